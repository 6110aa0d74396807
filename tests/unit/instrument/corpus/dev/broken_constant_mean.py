import pandas as pd
import numpy as np  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data

mean_target = train['target'].mean()
print(f'mean: {mean_target}')
loss = np.mean((train['target'] - mean_target) ** 2)
print('train mse', loss)  #= train-loss?

submission = pd.DataFrame()
submission['id'] = test['id']
submission['target'] = mean_target
submission.to_csv('submission.csv', index=False)
