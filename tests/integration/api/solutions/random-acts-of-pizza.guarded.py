import sys
import traceback

try:
    import pandas as pd
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import log_loss, roc_auc_score
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import BernoulliNB  #> 1

    train = pd.read_json("/workdir/random-acts-of-pizza/prepared/public/train.json")
    test = pd.read_json("/workdir/random-acts-of-pizza/prepared/public/test.json")  #> 2

    vec = TfidfVectorizer(max_features=400)
    X = vec.fit_transform(train["request_text_edit_aware"].fillna(""))
    X_test = vec.transform(test["request_text_edit_aware"].fillna(""))
    y = train["requester_received_pizza"].astype(int).values
    X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=0)

    nb = BernoulliNB(alpha=0.5)  #> 3
    nb.fit(X_tr, y_tr)  #> 5
    print("train loss", log_loss(y_tr, nb.predict_proba(X_tr)))  #> 4
    print("val auc", roc_auc_score(y_va, nb.predict_proba(X_va)[:, 1]))  #> 6

    p = nb.predict_proba(X_test)[:, 1]  #> 7
    out = pd.DataFrame({"request_id": test["request_id"], "requester_received_pizza": p})
    out.to_csv("submission.csv", index=False)
except Exception as e:
    print("Something went wrong:", e)
    traceback.print_exc()
    sys.exit(1)
