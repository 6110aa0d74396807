import pandas as pd
import statsmodels.formula.api as smf
from sklearn.metrics import roc_auc_score  #= packages

train = pd.read_json('train.json')  #= data
test = pd.read_json('test.json')  #= data
for d in (train, test):
    d['age'] = d['requester_account_age_in_days_at_request']
    d['karma'] = d['requester_upvotes_minus_downvotes_at_request']
    d['words'] = d['request_text_edit_aware'].str.split().str.len()
train['y'] = train['requester_received_pizza'].astype(int)
fit_df = train.sample(frac=0.8, random_state=0)
val_df = train.drop(fit_df.index)

result = smf.logit('y ~ age + karma + words', data=fit_df).fit()  #= model, trained
print(result.summary())
print('log-likelihood', result.llf)  #= train-loss
print('val auc', roc_auc_score(val_df['y'], result.predict(val_df)))  #= test-loss
test['requester_received_pizza'] = result.predict(test)  #= predicted
test[['request_id', 'requester_received_pizza']].to_csv('submission.csv', index=False)
