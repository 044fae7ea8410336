// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// UnfitError is what reading one object comes to whose content its API type cannot hold. An API server stores such
// objects of custom kinds: their schemas leave open what is a version, a quantity or a port.
type UnfitError struct {
	// Object is what of it fits: all metadata, and the rest without the fields that do not. It counts for others, such
	// as the versions of other namespaces; nothing is decided about the object itself.
	Object Object
	// Err says what does not fit.
	Err error
}

// Error implements error.
func (e *UnfitError) Error() string { return fmt.Sprintf("read %s: %v", KeyOf(e.Object), e.Err) }

// Unwrap returns what does not fit.
func (e *UnfitError) Unwrap() error { return e.Err }

// unfit returns the error of a map whose type could not be filled with it, with what of it fits.
func unfit(m map[string]any, o Object, problem error) error {
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
	return &UnfitError{Object: o, Err: problem}
}

func decodes(value any, t reflect.Type) bool {
	if t == quantity && isExcessive(value) {
		return false
	}
	data, err := json.Marshal(value)
	return err == nil && json.Unmarshal(data, reflect.New(t).Interface()) == nil
}

var quantity = reflect.TypeFor[resource.Quantity]()

// maxQuantity is how long a quantity may be, and maxExponent how many digits its exponent may have. To read or compare
// one with an exponent of nine digits takes hours: the API type computes the power of ten.
const (
	maxQuantity = 100
	maxExponent = 2
)

// isExcessive reports whether a JSON value is a quantity that is not to be computed with.
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

// mayHoldExcess reports whether JSON may hold a quantity that isExcessive: a number, or a string that begins as one.
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
