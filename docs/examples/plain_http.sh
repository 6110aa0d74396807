#!/bin/sh
# Scores programs over plain HTTP, with sh and curl. It reads JSON with sed, field by field;
# with jq installed, use `jq -r .reward` instead.
set -eu

url=${REWARD_SERVER_URL:-http://127.0.0.1:8000}
run=${RUN_ID:-plain-http}
task=spooky-author-identification
good="import shutil; shutil.copy('/workdir/$task/prepared/public/sample_submission.csv', 'submission.csv')"
bad="raise SystemExit('the model made a mistake')"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Send one request: print the status, store the answer in $folder.
call() {
    method=$1 path=$2
    shift 2
    [ -z "${REWARD_SERVER_API_KEY:-}" ] || set -- "$@" -H "Authorization: Bearer $REWARD_SERVER_API_KEY"
    : > "$folder/headers" > "$folder/body"
    curl -s -X "$method" -D "$folder/headers" -o "$folder/body" -w '%{http_code}' \
        -H 'Content-Type: application/json' -m 90 "$@" "$url$path" || printf ' lost'
}

# The first field of this name in the answer, without its quotes.
field() { grep -o "\"$1\":[^,}]*" "$folder/body" | head -n 1 | sed 's/^[^:]*: *//; s/"//g'; }

# Wait for Retry-After, or 5 seconds.
pause() { sleep "$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\).*/\1/p' "$folder/headers" | grep . || echo 5)"; }

# Score one program: exit status 1 if there is no reward for it.
score() {
    key=$1 body=$2
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        status=$(call POST /v1/jobs -H "Idempotency-Key: $key" -d "$body")
        while [ "$status" = 202 ]; do # accepted, queued or running: 30 seconds at a time
            status=$(call GET "/v1/jobs/$(field job_id)?wait_seconds=30")
        done
        case $status in
        200) return 0 ;;
        429 | 503) [ "$(field retryable)" = true ] || return 1 ;; # somebody cancelled the job
        *lost) ;; # no answer, or half of one
        *) echo "our request is wrong: $status $(field detail)" >&2 && exit 2 ;;
        esac
        pause # then retry with the same key, which joins the known job
    done
    return 1
}

report() {
    if [ "$(field status)" = scored ]; then
        echo "$1: reward $(field reward) in $(field duration_seconds) s"
    else
        echo "$1: reward $(field reward), failed: $(field kind)"
    fi
}

[ "$(call GET /readyz)" = 200 ] && echo "ready: true"

score "$run/1/0" "{\"task_id\": \"$task\", \"code\": \"$good\", \"run_id\": \"$run\", \"step\": 1}" &&
    report "a good program" || echo "a good program: no reward, drop this sample"
job=$(field job_id)
score "$run/1/0" "{\"task_id\": \"$task\", \"code\": \"$good\", \"run_id\": \"$run\", \"step\": 1}" &&
    [ "$(field job_id)" = "$job" ] && echo "the same key again is the same job: true"
score "$run/1/1" "{\"task_id\": \"$task\", \"code\": \"$bad\", \"run_id\": \"$run\"}" &&
    report "a bad program" || echo "a bad program: no reward, drop this sample"

# A batch over one connection: a line of JSON for each result, until two of three have ended.
number=0
for code in "$good" "$bad" "import time; time.sleep(50)"; do
    [ $number = 0 ] || printf ', '
    printf '{"task_id": "%s", "code": "%s", "run_id": "%s", "idempotency_key": "%s"}' \
        "$task" "$code" "$run" "$run/2/$number"
    number=$((number + 1))
done > "$folder/items"
echo "{\"items\": [$(cat "$folder/items")], \"min_complete\": 2, \"rest\": \"cancel\"}" > "$folder/batch"
until status=$(call POST /v1/score/batch -m 7200 -d "@$folder/batch") && [ "$status" = 200 ]; do
    case $status in
    429 | 503 | *lost) pause ;; # then retry: the items have keys
    *) echo "our batch is wrong: $status $(field detail)" >&2 && exit 2 ;;
    esac
done
grep . "$folder/body" > "$folder/lines" # blank lines are keep-alives
while read -r line; do
    echo "$line" > "$folder/body"
    case $line in
    *'"reward":'*) report "item $(field index)" ;;
    *) echo "item $(field index): no reward, drop this sample" ;;
    esac
done < "$folder/lines"
