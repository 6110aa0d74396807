import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score, log_loss  #= packages


def load_data():
    train = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/train.json')  #= data
    test = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/test.json')  #= data
    return train, test


def preprocess(train, test):
    vec = TfidfVectorizer(max_features=3000, stop_words='english')
    X = vec.fit_transform(train['request_title'] + ' ' + train['request_text_edit_aware'])
    X_test = vec.transform(test['request_title'] + ' ' + test['request_text_edit_aware'])
    y = train['requester_received_pizza'].astype(int).values
    return X, y, X_test


def train_model(X_train, y_train):
    model = LogisticRegression(C=0.5, class_weight='balanced', max_iter=1000)  #= model
    model.fit(X_train, y_train)  #= trained
    return model


def evaluate_model(model, X_train, y_train, X_val, y_val):
    train_pred = model.predict_proba(X_train)[:, 1]
    val_pred = model.predict_proba(X_val)[:, 1]
    print(f"Training loss: {log_loss(y_train, train_pred):.4f}")  #= train-loss
    print(f"Validation loss: {log_loss(y_val, val_pred):.4f}")  #= test-loss
    return roc_auc_score(y_val, val_pred)  #= test-loss


def make_predictions(model, X_test):
    return model.predict_proba(X_test)[:, 1]  #= predicted


def save_submission(test, predictions):
    sub = pd.DataFrame({'request_id': test['request_id'], 'requester_received_pizza': predictions})
    sub.to_csv('./submission.csv', index=False)


def main():
    train, test = load_data()  #= data
    X, y, X_test = preprocess(train, test)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)
    model = train_model(X_train, y_train)  #= model, trained
    auc = evaluate_model(model, X_train, y_train, X_val, y_val)  #= train-loss, test-loss
    print('AUC:', auc)
    predictions = make_predictions(model, X_test)  #= predicted
    save_submission(test, predictions)


if __name__ == "__main__":
    main()
