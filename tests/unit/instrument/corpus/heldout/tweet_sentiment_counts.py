import pandas as pd
from collections import defaultdict  #= packages

def jaccard(a, b):
    a, b = set(a.lower().split()), set(b.lower().split())
    return len(a & b) / max(1, len(a | b))

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
train.dropna(inplace=True)

# word weights per sentiment
weights = {s: defaultdict(float) for s in ['positive', 'negative', 'neutral']}
for s, sel in zip(train.sentiment, train.selected_text):
    for w in sel.lower().split():
        weights[s][w] += 1

def select(text, s):
    if s == 'neutral':
        return text
    words = str(text).split()
    best = [w for w in words if weights[s][w.lower()] > 20]
    return ' '.join(best) or str(text)

train['pred'] = [select(t, s) for t, s in zip(train.text, train.sentiment)]
print('train jaccard', sum(jaccard(a, b) for a, b in zip(train.pred, train.selected_text)) / len(train))  #= train-loss?
test['selected_text'] = [select(t, s) for t, s in zip(test.text, test.sentiment)]  #= predicted?
test[['textID', 'selected_text']].to_csv('submission.csv', index=False)
