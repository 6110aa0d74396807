"""Multinomial naive bayes from scratch."""
import csv
import math
from collections import Counter

AUTHORS = ['EAP', 'HPL', 'MWS']

def tokens(text):
    return [w.strip('.,;:!?"\'').lower() for w in text.split()]

train_rows = []
with open('/workdir/spooky-author-identification/prepared/public/train.csv', newline='') as f:
    for row in csv.DictReader(f):  #= data
        train_rows.append((row['text'], row['author']))
with open('/workdir/spooky-author-identification/prepared/public/test.csv', newline='') as f:
    test_rows = list(csv.DictReader(f))  #= data

counts = {a: Counter() for a in AUTHORS}
prior = Counter()
for text, author in train_rows:
    prior[author] += 1
    counts[author].update(tokens(text))  #= trained?, model?
vocab = set().union(*counts.values())
totals = {a: sum(counts[a].values()) for a in AUTHORS}

def predict(text):
    logp = {}
    for a in AUTHORS:
        s = math.log(prior[a] / len(train_rows))
        for w in tokens(text):
            s += math.log((counts[a][w] + 1) / (totals[a] + len(vocab)))
        logp[a] = s
    m = max(logp.values())
    z = sum(math.exp(v - m) for v in logp.values())
    return {a: math.exp(logp[a] - m) / z for a in AUTHORS}

with open('submission.csv', 'w', newline='') as f:
    w = csv.writer(f)
    w.writerow(['id'] + AUTHORS)
    for row in test_rows:
        p = predict(row['text'])  #= predicted?
        w.writerow([row['id']] + [p[a] for a in AUTHORS])
