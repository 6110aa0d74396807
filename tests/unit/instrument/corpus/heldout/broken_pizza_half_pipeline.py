import pandas as pd
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.ensemble import RandomForestClassifier  #= packages

train = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/train.json')  #= data

preprocessor = ColumnTransformer([
    ('text', TfidfVectorizer(max_features=1000), 'request_text'),
    ('num', SimpleImputer(), ['requester_account_age_in_days_at_request']),
])
X = preprocessor.fit_transform(train)
print('feature matrix', X.shape)
print('loss will be computed later')
pipeline = Pipeline([('pre', preprocessor)])
pipeline.fit(train)
