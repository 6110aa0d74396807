# Step 1: load data
# Step 2: simple features
# Step 3: logistic regression
# Step 4: predict
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss  #= packages

def main():
    train = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/train.csv')  #= data
    test = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/test.csv')  #= data

    def get_features(data):
        features = pd.DataFrame()
        features['len_a'] = data['response_a'].str.len()
        features['len_b'] = data['response_b'].str.len()
        features['diff'] = features['len_a'] - features['len_b']
        return features / 1000

    X = get_features(train)
    y = train[['winner_model_a', 'winner_model_b', 'winner_tie']].idxmax(axis=1)
    clf = LogisticRegression(multi_class='multinomial', max_iter=1000)  #= model
    clf.fit(X, y)  #= trained
    loss = log_loss(y, clf.predict_proba(X))  #= train-loss
    print('Training loss:', loss)

    probs = clf.predict_proba(get_features(test))  #= predicted
    submission = pd.DataFrame(probs, columns=clf.classes_)
    submission.insert(0, 'id', test['id'])
    submission.to_csv('submission.csv', index=False)

main()  #= data?, model?, trained?, train-loss?, predicted?
