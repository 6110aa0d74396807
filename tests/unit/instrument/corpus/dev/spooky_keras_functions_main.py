import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'
import numpy as np
import pandas as pd
from sklearn.preprocessing import LabelEncoder
from sklearn.model_selection import train_test_split
from tensorflow.keras.utils import to_categorical
from tensorflow.keras import Sequential
from tensorflow.keras.layers import Dense, Dropout
from sklearn.feature_extraction.text import TfidfVectorizer  #= packages

DIR = '/workdir/spooky-author-identification/prepared/public'

def prepare():
    train = pd.read_csv(os.path.join(DIR, 'train.csv'))  #= data
    test = pd.read_csv(os.path.join(DIR, 'test.csv'))  #= data
    le = LabelEncoder()
    y = to_categorical(le.fit_transform(train['author']))
    tfidf = TfidfVectorizer(max_features=5000)
    X = tfidf.fit_transform(train['text']).toarray()
    X_test = tfidf.transform(test['text']).toarray()
    return X, y, X_test, test['id'], le.classes_

def build(input_dim):
    m = Sequential()  #= model
    m.add(Dense(128, activation='relu', input_dim=input_dim))
    m.add(Dropout(0.5))
    m.add(Dense(3, activation='softmax'))
    m.compile(optimizer='adam', loss='categorical_crossentropy', metrics=['accuracy'])  #= model
    return m

def main():
    X, y, X_test, ids, classes = prepare()  #= data
    X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=0)
    net = build(X.shape[1])  #= model
    net.fit(X_tr, y_tr, epochs=5, batch_size=128, verbose=2, validation_data=(X_va, y_va))  #= trained, train-loss?, test-loss?
    tr = net.evaluate(X_tr, y_tr, verbose=0)  #= train-loss
    va = net.evaluate(X_va, y_va, verbose=0)  #= test-loss
    print('train loss %.4f acc %.4f' % (tr[0], tr[1]))
    print('valid loss %.4f acc %.4f' % (va[0], va[1]))
    probs = net.predict(X_test)  #= predicted
    sub = pd.DataFrame(probs, columns=classes)
    sub.insert(0, 'id', ids.values)
    sub.to_csv('submission.csv', index=False)

if __name__ == '__main__':
    main()
