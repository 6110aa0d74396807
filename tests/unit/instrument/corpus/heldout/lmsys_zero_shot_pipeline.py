import pandas as pd
import numpy as np
from transformers import pipeline
from sklearn.metrics import log_loss  #= packages

train = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/train.csv').head(500)  #= data
test = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/test.csv')  #= data

scorer = pipeline('sentiment-analysis', model='distilbert-base-uncased-finetuned-sst-2-english')  #= model

def quality(texts):
    res = scorer(texts, truncation=True, batch_size=16)
    return np.array([r['score'] if r['label'] == 'POSITIVE' else 1 - r['score'] for r in res])

def to_probs(df):
    a = quality(df['response_a'].tolist())
    b = quality(df['response_b'].tolist())
    logits = np.stack([a, b, np.full(len(a), 0.5)], axis=1) * 2
    e = np.exp(logits)
    return e / e.sum(axis=1, keepdims=True)

y = train[['winner_model_a', 'winner_model_b', 'winner_tie']].values.argmax(1)
print('train log loss', log_loss(y, to_probs(train)))  #= train-loss?, test-loss?
p = to_probs(test)  #= predicted
pd.DataFrame({'id': test['id'], 'winner_model_a': p[:, 0], 'winner_model_b': p[:, 1], 'winner_tie': p[:, 2]}).to_csv('submission.csv', index=False)
