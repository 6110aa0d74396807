import pandas as pd
import re  #= packages

DATA_DIR = '/workdir/tweet-sentiment-extraction/prepared/public'
train = pd.read_csv(f'{DATA_DIR}/train.csv')  #= data
test = pd.read_csv(f'{DATA_DIR}/test.csv')  #= data
train = train.dropna().reset_index(drop=True)

positive_words = {'love', 'good', 'great', 'happy', 'thanks', 'awesome', 'nice', 'fun', 'best', 'amazing'}
negative_words = {'sad', 'bad', 'hate', 'miss', 'sorry', 'sick', 'tired', 'bored', 'sucks', 'worst'}

def jaccard(str1, str2):
    a = set(str1.lower().split())
    b = set(str2.lower().split())
    c = a.intersection(b)
    return float(len(c)) / (len(a) + len(b) - len(c))

def extract_span(text, sentiment):
    if sentiment == 'neutral':
        return text
    vocab = positive_words if sentiment == 'positive' else negative_words
    words = text.split()
    hits = [i for i, w in enumerate(words) if re.sub(r'[^a-z]', '', w.lower()) in vocab]
    if not hits:
        return text
    return ' '.join(words[hits[0]:hits[-1] + 1])

scores = []
for _, row in train.iterrows():
    scores.append(jaccard(extract_span(row['text'], row['sentiment']), row['selected_text']))  #= train-loss?
print('Average Jaccard on train:', sum(scores) / len(scores))  #= train-loss?

test['text'] = test['text'].astype(str)
test['selected_text'] = test.apply(lambda r: extract_span(r['text'], r['sentiment']), axis=1)  #= predicted?
test[['textID', 'selected_text']].to_csv('submission.csv', index=False)
