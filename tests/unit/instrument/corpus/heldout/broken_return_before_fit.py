import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_squared_error  #= packages

def load():
    return pd.read_csv('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/train.csv')  #= data

def features(df):
    df['n'] = df['full_text'].str.split().apply(len)
    return df[['n']]

def train():
    df = load()  #= data
    X, y = features(df), df['score']
    model = RandomForestRegressor()  #= model
    return model

def main():
    model = train()  #= data, model
    print('Model trained successfully')
    print('Training loss: 0.42')
    print('Testing loss: 0.57')

if __name__ == '__main__':
    main()  #= data?, model?
