// Scores programs over plain HTTP, with nothing but Node 18 or newer.

const URL = process.env.REWARD_SERVER_URL ?? "http://127.0.0.1:8000";
const API_KEY = process.env.REWARD_SERVER_API_KEY; // only if the server has keys
const RUN = process.env.RUN_ID ?? "plain-http";
const TASK = "spooky-author-identification";
const GOOD = `
import shutil
shutil.copy("/workdir/${TASK}/prepared/public/sample_submission.csv", "submission.csv")
`;
const BAD = "raise SystemExit('the model made a mistake')";

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// Send one request; return the status, the seconds to wait, and the JSON that came back.
async function call(method, path, body, key) {
  const headers = { "Content-Type": "application/json" };
  if (API_KEY) headers["Authorization"] = `Bearer ${API_KEY}`;
  if (key) headers["Idempotency-Key"] = key;
  try {
    const response = await fetch(URL + path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(90_000),
    });
    const seconds = Number(response.headers.get("Retry-After") ?? 5);
    return { status: response.status, seconds, answer: await response.json() };
  } catch (error) { // no answer at all: as retryable as a 503
    return { status: 503, seconds: 5, answer: { detail: String(error), retryable: true } };
  }
}

// Return the answer for one program, or null if there is no reward for it.
async function score(body, key) {
  for (let attempt = 0; attempt < 10; attempt++) {
    let { status, seconds, answer } = await call("POST", "/v1/jobs", body, key);
    while (status === 202) { // accepted, queued or running: wait up to 30 seconds at a time
      const path = `/v1/jobs/${answer.job_id}?wait_seconds=30`;
      ({ status, seconds, answer } = await call("GET", path));
    }
    if (status === 200) return answer;
    if (status !== 429 && status !== 503) {
      throw new Error(`our request is wrong: ${status} ${answer.detail}`);
    }
    if (!answer.retryable) return null; // somebody cancelled the job
    await sleep(seconds); // then retry with the same key, which joins the known job
  }
  return null;
}

function report(name, answer) {
  if (answer === null) {
    console.log(`${name}: no reward, drop this sample`);
  } else if (answer.error) {
    console.log(`${name}: reward ${answer.reward}, failed: ${answer.error.kind}`);
  } else {
    const seconds = answer.duration_seconds.toFixed(3);
    console.log(`${name}: reward ${answer.reward.toFixed(3)} in ${seconds} s`);
  }
}

console.log("ready:", (await call("GET", "/readyz")).status === 200);

const good = { task_id: TASK, code: GOOD, run_id: RUN, step: 1 };
const first = await score(good, `${RUN}/1/0`);
report("a good program", first);
const again = await score(good, `${RUN}/1/0`);
console.log("the same key again is the same job:", again.job_id === first.job_id);
report("a bad program", await score({ task_id: TASK, code: BAD, run_id: RUN }, `${RUN}/1/1`));

const items = [GOOD, BAD, "import time; time.sleep(50)"].map((code, number) => (
  { task_id: TASK, code, run_id: RUN, idempotency_key: `${RUN}/2/${number}` }
));
const batch = { items, min_complete: 2, rest: "cancel" };
let accepted;
while ((accepted = await call("POST", "/v1/batches", batch)).status !== 202) { // all or none
  const { status, seconds, answer } = accepted;
  if (!answer.retryable) throw new Error(`our batch is wrong: ${status} ${answer.detail}`);
  await sleep(seconds);
}
let progress;
do {
  const path = `/v1/batches/${accepted.answer.batch_id}?wait_seconds=30`;
  progress = await call("GET", path);
  if (progress.status !== 200) await sleep(progress.seconds);
} while (progress.status !== 200 || !progress.answer.complete);
for (const result of progress.answer.results) report(`item ${result.index}`, result);
for (const lost of progress.answer.errors) report(`item ${lost.index}`, null);
