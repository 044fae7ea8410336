// SPDX-License-Identifier: Apache-2.0

// Package nilcheck recognizes nil pointers inside interface values.
package nilcheck

import "reflect"

// IsNil reports whether v is nil or contains a nil pointer.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}
