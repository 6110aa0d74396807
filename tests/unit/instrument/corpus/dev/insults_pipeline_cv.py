import pandas as pd
from sklearn.pipeline import Pipeline, FeatureUnion
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score  #= packages

train_df = pd.read_csv('train.csv')  #= data
test_df = pd.read_csv('test.csv')  #= data

pipeline = Pipeline([
    ('features', FeatureUnion([
        ('word', TfidfVectorizer(ngram_range=(1, 2), min_df=2)),
        ('char', TfidfVectorizer(analyzer='char_wb', ngram_range=(2, 5), min_df=2)),
    ])),
    ('clf', LogisticRegression(C=4, solver='liblinear')),
])  #= model

scores = cross_val_score(pipeline, train_df['Comment'], train_df['Insult'], cv=5, scoring='roc_auc')  #= test-loss, trained?
print("CV AUC: %.4f (+/- %.4f)" % (scores.mean(), scores.std()))  #= test-loss

pipeline.fit(train_df['Comment'], train_df['Insult'])  #= trained
preds = pipeline.predict_proba(test_df['Comment'])[:, 1]  #= predicted

test_df['Insult'] = preds
test_df[['Insult', 'Date', 'Comment']].to_csv('submission.csv', index=False)
