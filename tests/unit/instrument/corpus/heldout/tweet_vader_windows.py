import pandas as pd
import numpy as np
from nltk.sentiment.vader import SentimentIntensityAnalyzer
import nltk  #= packages
nltk.download('vader_lexicon')

train = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/test.csv')  #= data
train['text'] = train['text'].astype(str)
train['selected_text'] = train['selected_text'].astype(str)
test['text'] = test['text'].astype(str)

sid = SentimentIntensityAnalyzer()  #= model?

def jaccard_score(a, b):
    sa, sb = set(a.lower().split()), set(b.lower().split())
    if not sa and not sb:
        return 0.5
    inter = sa & sb
    return len(inter) / (len(sa) + len(sb) - len(inter))

def select(text, sentiment):
    if sentiment == 'neutral' or len(text.split()) < 3:
        return text
    words = text.split()
    best, best_score = text, -1
    for i in range(len(words)):
        for j in range(i + 1, min(i + 8, len(words)) + 1):
            piece = ' '.join(words[i:j])
            s = sid.polarity_scores(piece)['pos' if sentiment == 'positive' else 'neg']
            if s > best_score:
                best, best_score = piece, s
    return best

valid = train.sample(2000, random_state=0)
valid_pred = valid.apply(lambda r: select(r['text'], r['sentiment']), axis=1)
score = np.mean([jaccard_score(p, t) for p, t in zip(valid_pred, valid['selected_text'])])  #= test-loss?, train-loss?
print('Validation Jaccard:', score)  #= test-loss?, train-loss?

test['selected_text'] = test.apply(lambda r: select(r['text'], r['sentiment']), axis=1)  #= predicted?
test[['textID', 'selected_text']].to_csv('submission.csv', index=False)
