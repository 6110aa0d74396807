import csv
import json
from pathlib import Path
from sklearn.naive_bayes import MultinomialNB
from sklearn.feature_extraction.text import CountVectorizer  #> 1

with open("train.json") as handle:
    train = json.load(handle)  #> 2
with open("test.json", "r", encoding="utf-8") as handle:
    test = [json.loads(line) for line in handle]  #> 2
with open("log.txt", "w") as log:
    log.write("loaded data")
names = Path("columns.txt").read_text().split()  #> 2
rows = []
with open("extra.csv") as extra:
    for row in csv.reader(extra):  #> 2
        rows.append(row)
text = [r["text"] for r in train]
vec = CountVectorizer()
nb = MultinomialNB()  #> 3
nb.fit(vec.fit_transform(text), [r["label"] for r in train])  #> 5
answer = nb.predict(vec.transform([r["text"] for r in test]))  #> 7
