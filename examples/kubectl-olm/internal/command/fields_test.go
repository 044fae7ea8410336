// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/command"
	"github.com/olmcore/olm/preview"
)

// TestTextOfThePreviewShowsEveryField checks that each field that is part of the JSON of a preview changes the text of
// approve -o wide.
func TestTextOfThePreviewShowsEveryField(t *testing.T) {
	empty, err := command.PreviewText(preview.Preview{})
	require.NoError(t, err)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[preview.Preview]()) {
		if f.Tag.Get("json") == "-" || !f.IsExported() {
			continue
		}
		p := reflect.New(reflect.TypeFor[preview.Preview]()).Elem()
		fill(p.FieldByIndex(f.Index))
		out, err := command.PreviewText(p.Interface().(preview.Preview))
		require.NoError(t, err)
		if out == empty {
			t.Errorf("kubectl olm approve does not print field %s of Preview: "+
				"add it to previewSections in examples/kubectl-olm/internal/command/previewed.go", f.Name)
		}
	}
}

// fill sets a value and all that it contains to something that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("example")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	}
}
