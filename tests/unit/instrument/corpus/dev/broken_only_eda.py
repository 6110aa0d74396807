import pandas as pd
import numpy as np
import matplotlib.pyplot as plt
import seaborn as sns  #= packages

train = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data

print(train.shape, test.shape)
print(train.describe())
print('mean loss of energy', train['formation_energy_ev_natom'].mean())
sns.heatmap(train.corr())
plt.savefig('corr.png')
train['bandgap_energy_ev'].hist(bins=50)
plt.savefig('hist.png')
