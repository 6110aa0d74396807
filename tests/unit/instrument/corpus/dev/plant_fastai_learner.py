from fastai.vision.all import *
import pandas as pd
import numpy as np  #= packages

path = Path('/workdir/plant-pathology-2020-fgvc7/prepared/public')
train_df = pd.read_csv(path/'train.csv')  #= data
test_df = pd.read_csv(path/'test.csv')  #= data
classes = ['healthy', 'multiple_diseases', 'rust', 'scab']
train_df['label'] = train_df[classes].idxmax(axis=1)
train_df['fname'] = 'images/' + train_df['image_id'] + '.jpg'

dls = ImageDataLoaders.from_df(train_df, path, fn_col='fname', label_col='label', valid_pct=0.2, seed=42,
                               item_tfms=Resize(256), batch_tfms=aug_transforms(size=224), bs=32)  #= data
learn = vision_learner(dls, resnet34, metrics=[accuracy], pretrained=False)  #= model
learn.fine_tune(4)  #= trained, train-loss?, test-loss?
val_loss, val_acc = learn.validate()  #= test-loss
print(f'validation loss {val_loss:.4f} accuracy {val_acc:.4f}')  #= test-loss

test_files = [path/'images'/f'{i}.jpg' for i in test_df['image_id']]
test_dl = dls.test_dl(test_files)
preds, _ = learn.get_preds(dl=test_dl)  #= predicted
sub = pd.DataFrame(preds.numpy(), columns=dls.vocab)
sub.insert(0, 'image_id', test_df['image_id'])
sub[['image_id'] + classes].to_csv('submission.csv', index=False)
