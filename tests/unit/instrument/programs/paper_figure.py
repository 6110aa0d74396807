import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer  #> 1

train_data = pd.read_json("/workdir/pizza/prepared/public/train.json")  #> 2
test_data = pd.read_json("/workdir/pizza/prepared/public/test.json")  #> 2

tfidf = TfidfVectorizer(stop_words="english")
tfidf.fit(train_data["text"])
train_tfidf = tfidf.transform(train_data["text"])
test_tfidf = tfidf.transform(test_data["text"])

rf = RandomForestClassifier(n_estimators=100)  #> 3
rf.fit(train_tfidf, train_data["label"])  #> 5
probabilities = rf.predict_proba(test_tfidf)[:, 1]  #> 7
out = pd.DataFrame({"id": test_data["id"], "label": probabilities})
out.to_csv("./submission.csv", index=False)
