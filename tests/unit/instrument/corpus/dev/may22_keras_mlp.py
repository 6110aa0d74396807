import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow.keras.models import Model
from tensorflow.keras.layers import Input, Dense, BatchNormalization, Dropout
from tensorflow.keras.callbacks import EarlyStopping, ReduceLROnPlateau
from sklearn.preprocessing import StandardScaler
from sklearn.model_selection import KFold
from sklearn.metrics import roc_auc_score  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
features = [f for f in test.columns if f not in ['id', 'f_27']]

scaler = StandardScaler()
X = scaler.fit_transform(train[features])
X_test = scaler.transform(test[features])
y = train['target'].values


def build_model(input_dim):
    inputs = Input(shape=(input_dim,))
    x = Dense(64, activation='swish')(inputs)
    x = BatchNormalization()(x)
    x = Dense(64, activation='swish')(x)
    x = Dropout(0.1)(x)
    out = Dense(1, activation='sigmoid')(x)
    model = Model(inputs, out)  #= model
    model.compile(optimizer='adam', loss='binary_crossentropy', metrics=['AUC'])
    return model


preds = np.zeros(len(test))
scores = []
kf = KFold(n_splits=5, shuffle=True, random_state=1)
for fold, (trn_idx, val_idx) in enumerate(kf.split(X)):
    X_tr, X_va = X[trn_idx], X[val_idx]
    y_tr, y_va = y[trn_idx], y[val_idx]
    model = build_model(X.shape[1])  #= model
    es = EarlyStopping(patience=5, restore_best_weights=True)
    lr = ReduceLROnPlateau(patience=3)
    history = model.fit(X_tr, y_tr, validation_data=(X_va, y_va), epochs=50, batch_size=2048, callbacks=[es, lr], verbose=0)  #= trained, train-loss?, test-loss?
    print(f"Fold {fold}: loss={history.history['loss'][-1]:.4f}")  #= train-loss
    score = roc_auc_score(y_va, model.predict(X_va, batch_size=4096))  #= test-loss
    scores.append(score)
    print(f"Fold {fold}: val auc={score:.5f}")
    preds += model.predict(X_test, batch_size=4096).ravel() / 5  #= predicted

print('mean', np.mean(scores))
submission = pd.DataFrame({'id': test['id'], 'target': preds})
submission.to_csv('submission.csv', index=False)
