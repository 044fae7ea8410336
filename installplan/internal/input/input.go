// SPDX-License-Identifier: Apache-2.0

// Package input checks what the Inputs of package installplan and those below it hold.
package input

import "github.com/olmcore/olm/olmcore"

// Required returns an *olmcore.InputError for a list that was not read, and for what
// olmcore.ValidateList refuses.
func Required[O olmcore.Object](field string, list olmcore.Observed[O], checks ...olmcore.Check) error {
	if !list.Complete && len(list.Items) == 0 {
		return &olmcore.InputError{Field: field, Problem: "was not read"}
	}
	return olmcore.ValidateList(field, list, checks...)
}
