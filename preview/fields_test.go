// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/preview"
)

// reported returns the names of the fields of a Preview that are part of its JSON, and their names there.
func reported() (fields, keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[preview.Preview]()) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "-" && f.IsExported() {
			fields, keys = append(fields, f.Name), append(keys, key)
		}
	}
	return fields, keys
}

func TestEveryFieldOfThePreviewIsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../docs/previews.md")
	require.NoError(t, err)
	fields, keys := reported()
	for i, field := range fields {
		row := "\n| `" + field + "` | `" + keys[i] + "` | "
		if !strings.Contains(string(docs), row) {
			t.Errorf("docs/previews.md does not document field %s of Preview: add a row %q to its table", field, strings.TrimSpace(row))
		}
	}
}

func TestJSONOfThePreviewContainsEveryFieldInOrder(t *testing.T) {
	fields, keys := reported()
	for i, key := range keys {
		require.NotEmpty(t, key, "field %s of Preview has no JSON name: add a json tag in preview/between.go", fields[i])
	}
	file, err := os.Open("testdata/upgrade.json")
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, keys, keysOf(t, json.NewDecoder(file)), "preview/testdata/upgrade.json does not contain the fields of Preview "+
		"in their order: run UPDATE_GOLDEN=1 go test ./preview -run TestAnUpgradeInFull, and read the diff")
}

func TestNoListOfThePreviewIsNil(t *testing.T) {
	p := reflect.ValueOf(preview.Between(nil, nil))
	fields, _ := reported()
	for _, name := range fields {
		if f := p.FieldByName(name); f.Kind() == reflect.Slice {
			require.False(t, f.IsNil(), "field %s of Preview is null in JSON: set it to an empty list in preview/between.go", name)
		}
	}
}

// keysOf returns the keys of a JSON object in their order.
func keysOf(t *testing.T, d *json.Decoder) (keys []string) {
	t.Helper()
	_, err := d.Token() // {
	require.NoError(t, err)
	for d.More() {
		key, err := d.Token()
		require.NoError(t, err)
		keys = append(keys, key.(string))
		require.NoError(t, d.Decode(new(json.RawMessage)))
	}
	return keys
}
