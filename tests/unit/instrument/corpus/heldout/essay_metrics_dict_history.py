import pandas as pd
import numpy as np
import torch
from torch import nn
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import cohen_kappa_score
from collections import defaultdict  #= packages

SEED = 3
torch.manual_seed(SEED)
np.random.seed(SEED)


def get_data():
    root = '/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/'
    df, df_test = pd.read_csv(root + 'train.csv'), pd.read_csv(root + 'test.csv')  #= data
    hv = HashingVectorizer(n_features=2 ** 15, alternate_sign=False)
    svd = TruncatedSVD(200, random_state=SEED)
    feats = svd.fit_transform(hv.transform(df.full_text))
    feats_test = svd.transform(hv.transform(df_test.full_text))
    return (torch.tensor(feats, dtype=torch.float), torch.tensor(df.score.values - 1),
            torch.tensor(feats_test, dtype=torch.float), df_test.essay_id)


def step(net, x, y, loss_fn, optim):
    net.train()
    optim.zero_grad()
    loss = loss_fn(net(x), y)  #= train-loss
    loss.backward()
    optim.step()
    return loss.item()


@torch.no_grad()
def check(net, x, y, loss_fn):
    net.eval()
    logits = net(x)
    return {
        'loss': loss_fn(logits, y).item(),
        'qwk': cohen_kappa_score(y.numpy(), logits.argmax(1).numpy(), weights='quadratic'),
    }  #= test-loss


def main():
    x, y, x_test, ids = get_data()  #= data
    n = int(len(x) * 0.9)
    x_tr, y_tr, x_va, y_va = x[:n], y[:n], x[n:], y[n:]
    net = nn.Sequential(nn.Linear(200, 64), nn.GELU(), nn.Linear(64, 6))  #= model
    optim = torch.optim.AdamW(net.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    history = defaultdict(list)
    for epoch in range(60):  #= trained
        for i in range(0, n, 256):  #= trained?
            history['train'].append(step(net, x_tr[i:i + 256], y_tr[i:i + 256], loss_fn, optim))  #= train-loss
        m = check(net, x_va, y_va, loss_fn)  #= test-loss
        history['val'].append(m['loss'])
        if epoch % 10 == 9:
            print(f"{epoch + 1}: train {np.mean(history['train'][-20:]):.4f}, val {m['loss']:.4f}, qwk {m['qwk']:.4f}")  #= train-loss, test-loss
    with torch.no_grad():
        score = net(x_test).argmax(1).numpy() + 1  #= predicted
    pd.DataFrame({'essay_id': ids, 'score': score}).to_csv('submission.csv', index=False)


if __name__ == '__main__':
    main()
