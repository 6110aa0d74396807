# %%
import numpy as np
import pandas as pd
from wordcloud import WordCloud
import matplotlib.pyplot as plt  #= packages
# %%
df = pd.read_csv("train.csv")  #= data
df.info()
# %%
df['text_len'] = df['text'].str.len()
df.groupby('author')['text_len'].mean()
# %%
for author in df.author.unique():
    wc = WordCloud().generate(' '.join(df[df.author == author].text))
    plt.imshow(wc)
    plt.title(f'model: {author}')
