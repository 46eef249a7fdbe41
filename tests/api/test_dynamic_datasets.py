"""Dynamic datasets: what a filter of requests holds, and how they are found by what it names."""

from starlette.testclient import TestClient

from storage.store import Store
from tests.dataset_calls import (
    V2,
    call,
    listed,
    log,
    make_group,
    numbers,
    publish,
    rows,
    run_all,
    saved,
    versions,
)


def test_a_dynamic_dataset_holds_what_its_filter_matches(client: TestClient, store: Store) -> None:
    log(client, provider="openai")
    wanted = log(client, provider="anthropic", prompt_input_variables={"x": "y"})
    group = make_group(client)
    params = {
        "filter_group": {"filters": [{"field": "provider_type", "operator": "is", "value": "anthropic"}]},
        "variables_to_parse": ["x"],
    }
    made = call(client, "from-filter-params", group, **params)
    assert made.status_code == 201, made.text
    assert run_all(store) == [None]
    (version,) = versions(client, group)
    assert (version["version_number"], version["filter_params"]) == (1, params)
    assert version["column_names"] == ["request_id", "input", "output", "x"]
    assert [(row["request_id"], row["x"]) for row in rows(client, version["id"])] == [(wanted, "y")]


def test_a_dynamic_dataset_by_the_ids_of_a_prompt_and_times(client: TestClient, store: Store) -> None:
    prompt, other = publish(client, "greet"), publish(client, "part")
    wanted = log(client, prompt_name="greet", prompt_version_number=1)
    log(client, prompt_name="part", prompt_version_number=1)
    group = make_group(client)
    params = {"prompt_version_id": prompt["prompt_version_id"], "start_time": "2020-01-01T00:00:00Z"}
    call(client, "from-filter-params", group, **params)
    assert run_all(store) == [None]
    (version,) = versions(client, group)
    assert [row["request_id"] for row in rows(client, version["id"])] == [wanted]
    assert version["filter_params"] == params
    assert [one["id"] for one in listed(client, prompt_version_id=prompt["prompt_version_id"])] == [
        version["id"]
    ]
    assert listed(client, prompt_version_id=other["prompt_version_id"]) == []
    assert call(client, "from-filter-params", group, prompt_id=99).status_code == 404


def test_a_filter_that_matches_nothing_leaves_no_draft(client: TestClient, store: Store) -> None:
    group = make_group(client)
    call(client, "from-filter-params", group, filter_group={})
    assert [type(end).__name__ for end in run_all(store)] == ["Refused"]
    assert numbers(client, group, status="all") == []
    removed = client.get(f"{V2}/audit").json()["data"][0]
    assert (removed["action"], removed["details"]["error_message"]) == ("remove_draft", "No requests matched")


def test_datasets_are_found_by_the_prompts_that_their_filters_name(client: TestClient, store: Store) -> None:
    log(client)
    prompt, other = publish(client, "greet"), publish(client, "part")
    group, plain = make_group(client), make_group(client, "plain")
    saved(client, store, plain)
    filters = [
        {"field": "prompt", "operator": "is", "value": "greet"},
        {"field": "prompt_version_number", "operator": "eq", "value": 1},
        {"field": "prompt_label", "operator": "is", "value": "prod"},
        {"field": "prompt_id", "operator": "neq", "value": other["id"]},
        {"field": "prompt_id", "operator": "is_null"},
    ]
    call(client, "from-filter-params", group, filter_group={"logic": "OR", "filters": filters})
    assert run_all(store) == [None]
    (label,) = client.get("/prompt-templates/greet/labels").json()["release_labels"]
    found = {
        "prompt_id": prompt["id"],
        "prompt_version_id": prompt["prompt_version_id"],
        "prompt_label_id": label["release_label_id"],
    }
    for field, value in found.items():
        assert [one["dataset_group_id"] for one in listed(client, **{field: value})] == [group], field
        assert listed(client, **{field: value + 1}) == []
    assert listed(client, **found, dataset_group_id=plain) == []
