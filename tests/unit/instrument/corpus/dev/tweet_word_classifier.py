import pandas as pd
import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split  #= packages


def jaccard(str1, str2):
    a = set(str1.lower().split())
    b = set(str2.lower().split())
    if len(a) == 0 and len(b) == 0:
        return 0.5
    c = a.intersection(b)
    return float(len(c)) / (len(a) + len(b) - len(c))


def word_features(words, i, sentiment):
    return {
        'word': words[i].lower(),
        'sent': sentiment,
        'word_sent': words[i].lower() + '_' + sentiment,
        'pos': i / len(words),
        'prev': words[i - 1].lower() if i > 0 else '<s>',
    }


train = pd.read_csv('train.csv').dropna()  #= data
test = pd.read_csv('test.csv')  #= data
test['text'] = test['text'].fillna('')

trn, val = train_test_split(train, test_size=0.1, random_state=13)

feats, labels = [], []
for _, row in trn.iterrows():
    words = row['text'].split()
    selected = set(row['selected_text'].split())
    for i in range(len(words)):
        feats.append(word_features(words, i, row['sentiment']))
        labels.append(int(words[i] in selected))

dv = DictVectorizer()
X = dv.fit_transform(feats)
clf = SGDClassifier(loss='log_loss', max_iter=20)  #= model
clf.fit(X, labels)  #= trained
print('train accuracy', clf.score(X, labels))  #= train-loss


def extract(text, sentiment):
    words = text.split()
    if sentiment == 'neutral' or len(words) == 0:
        return text
    p = clf.predict_proba(dv.transform([word_features(words, i, sentiment) for i in range(len(words))]))[:, 1]
    keep = [w for w, pi in zip(words, p) if pi > 0.5]
    return ' '.join(keep) if keep else text


val_scores = [jaccard(extract(t, s), g) for t, s, g in zip(val['text'], val['sentiment'], val['selected_text'])]  #= test-loss
print('val jaccard', np.mean(val_scores))  #= test-loss

test['selected_text'] = [extract(t, s) for t, s in zip(test['text'], test['sentiment'])]  #= predicted
test[['textID', 'selected_text']].to_csv('submission.csv', index=False)
