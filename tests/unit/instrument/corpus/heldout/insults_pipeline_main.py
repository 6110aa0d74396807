import os
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages


def load_data(data_dir):
    train = pd.read_csv(os.path.join(data_dir, 'train.csv'))  #= data
    test = pd.read_csv(os.path.join(data_dir, 'test.csv'))  #= data
    return train, test


def clean_text(text):
    text = text.replace('\\n', ' ').replace('\\xa0', ' ')
    return text.lower()


def build_model():
    return Pipeline([  #= model
        ('vect', CountVectorizer(ngram_range=(1, 2))),
        ('tfidf', TfidfTransformer()),
        ('clf', SGDClassifier(loss='log_loss', alpha=1e-4, max_iter=50, random_state=42)),
    ])


def main():
    train, test = load_data('/workdir/detecting-insults-in-social-commentary/prepared/public')  #= data
    train['Comment'] = train['Comment'].apply(clean_text)
    test_comments = test['Comment'].apply(clean_text)
    X_train, X_val, y_train, y_val = train_test_split(train['Comment'], train['Insult'], test_size=0.2, random_state=42)

    model = build_model()  #= model
    print("Training model...")
    model.fit(X_train, y_train)  #= trained

    train_auc = roc_auc_score(y_train, model.predict_proba(X_train)[:, 1])  #= train-loss
    val_auc = roc_auc_score(y_val, model.predict_proba(X_val)[:, 1])  #= test-loss
    print('Train AUC: %.4f' % train_auc)
    print('Validation AUC: %.4f' % val_auc)

    predictions = model.predict_proba(test_comments)[:, 1]  #= predicted
    submission = pd.DataFrame({'Insult': predictions, 'Date': test['Date'], 'Comment': test['Comment']})
    submission.to_csv('submission.csv', index=False)
    print("Submission saved!")


if __name__ == '__main__':
    main()
