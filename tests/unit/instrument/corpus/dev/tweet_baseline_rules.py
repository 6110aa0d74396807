import pandas as pd
import numpy as np  #= packages

train = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/test.csv')  #= data

print(train.head())
print(train['sentiment'].value_counts())

# Use the entire text as the selected text
test['selected_text'] = test['text']
test[['textID', 'selected_text']].to_csv('submission.csv', index=False)
