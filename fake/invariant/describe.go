// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// Describe prints a result, a line for each thing it says, for error messages.
func Describe(result olmcore.Result) string {
	var b strings.Builder
	for _, a := range result.Actions {
		record, err := olmcore.RecordOf(a)
		if err != nil {
			fmt.Fprintf(&b, "  broken action: %v\n", err)
			continue
		}
		line, _ := json.Marshal(record)
		fmt.Fprintf(&b, "  %s\n", line)
	}
	for _, t := range result.Transitions {
		line, _ := json.Marshal(t)
		fmt.Fprintf(&b, "  transition %s\n", line)
	}
	for _, d := range result.Diagnostics {
		line, _ := json.Marshal(d)
		fmt.Fprintf(&b, "  diagnostic %s\n", line)
	}
	fmt.Fprintf(&b, "  requeue after %s", result.RequeueAfter)
	return b.String()
}

// firstDifference names the path at which two values of one type differ first.
func firstDifference(a, b reflect.Value, path string) string {
	if a.IsValid() != b.IsValid() || !a.IsValid() || a.Type() != b.Type() {
		return ": " + path
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !a.IsNil() && !b.IsNil() {
			return firstDifference(a.Elem(), b.Elem(), path)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			field := a.Type().Field(i)
			if field.IsExported() && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				return firstDifference(a.Field(i), b.Field(i), path+"."+field.Name)
			}
		}
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if !reflect.DeepEqual(a.Index(i).Interface(), b.Index(i).Interface()) {
				return firstDifference(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	return ": " + path
}
