import pandas as pd
import numpy as np
import statsmodels.api as sm  #= packages

train = pd.read_csv('/workdir/us-patent-phrase-to-phrase-matching/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/us-patent-phrase-to-phrase-matching/prepared/public/test.csv')  #= data

def build(df):
    jac = []
    for a, t in zip(df.anchor, df.target):
        sa, st = set(a.split()), set(t.split())
        jac.append(len(sa & st) / len(sa | st))
    X = pd.DataFrame({'jac': jac, 'dl': (df.anchor.str.len() - df.target.str.len()).abs().values})
    return sm.add_constant(X)

split = int(len(train) * 0.8)
tr, va = train.iloc[:split], train.iloc[split:]
ols = sm.OLS(tr['score'].values, build(tr))  #= model
res = ols.fit()  #= trained
print(res.summary())
print('train mse', res.mse_resid)  #= train-loss
pv = res.predict(build(va))
print('valid pearson', np.corrcoef(pv, va['score'].values)[0, 1])  #= test-loss
test['score'] = res.predict(build(test)).values  #= predicted
test[['id', 'score']].to_csv('submission.csv', index=False)
