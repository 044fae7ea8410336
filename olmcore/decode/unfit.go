// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/olmcore/olm/olmcore"
)

// unfit returns an *olmcore.UnfitError for JSON values that do not fit the Go type of o. The error contains o, filled
// with the fields that fit.
func unfit(m map[string]any, o olmcore.Object, problem error) error {
	reflect.ValueOf(o).Elem().SetZero()
	f := folderOf(o)
	f.fitting = true
	kept, _ := f.fold(m, reflect.TypeOf(o))
	if FromMap(kept.(map[string]any), o) != nil {
		reflect.ValueOf(o).Elem().SetZero()
		identity := map[string]any{"apiVersion": m["apiVersion"], "kind": m["kind"], "metadata": m["metadata"]}
		if err := FromMap(identity, o); err != nil {
			return fmt.Errorf("read an object: %w", err)
		}
	}
	return &olmcore.UnfitError{Object: o, Err: problem}
}

// decodes reports whether a type that decodes itself accepts a value.
func decodes(value any, t reflect.Type) bool {
	if t == quantity && isExcessive(value) {
		return false
	}
	data, err := json.Marshal(value)
	return err == nil && json.Unmarshal(data, reflect.New(t).Interface()) == nil
}

var quantity = reflect.TypeFor[resource.Quantity]()

// maxQuantity is the maximum length of a quantity, and maxExponent the maximum number of digits of its exponent. The
// API type computes the power of ten: it takes hours to parse or compare a quantity with an exponent of nine digits.
const (
	maxQuantity = 100
	maxExponent = 2
)

// isExcessive reports whether a JSON value is a quantity that exceeds these limits.
func isExcessive(value any) bool {
	var text string
	switch x := value.(type) {
	case string:
		text = x
	case json.Number:
		text = string(x)
	}
	_, exponent, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), "e")
	return len(text) > maxQuantity || len(strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")) > maxExponent
}

// mayHoldExcess reports whether a JSON text may contain an excessive quantity: a number, or a string that starts like
// a number.
func mayHoldExcess(data []byte) bool {
	tokens := json.NewDecoder(bytes.NewReader(data))
	tokens.UseNumber()
	for {
		token, err := tokens.Token()
		if err != nil {
			return false
		}
		switch x := token.(type) {
		case json.Number:
			if isExcessive(x) {
				return true
			}
		case string:
			x = strings.TrimSpace(x)
			if x != "" && strings.Contains("0123456789+-.", x[:1]) && isExcessive(x) {
				return true
			}
		}
	}
}
