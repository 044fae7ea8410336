// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// Report is the result of one reconcile after its actions ran.
type Report struct {
	// Controller is the name of the controller.
	Controller string
	Key        types.NamespacedName
	Result     olmcore.Result
	// News contains the Diagnostics of Result that the previous reconcile of the key did not have.
	News []olmcore.Diagnostic
	// Err is the error of olmcore.Run. It includes failed writes that Runner.Run does not return as an error.
	Err error

	isGone bool // the object of the key does not exist
}

// String returns one line for each action, each of the News, and the error. Line breaks in texts are replaced. An error
// that needs no attention is left out: a conflict, an object or a namespace that is gone or terminating, and the end of
// the program.
func (r Report) String() string {
	var text strings.Builder
	line := func(format string, args ...any) {
		text.WriteString(printable.OneLine(fmt.Sprintf("%s %s: %s", r.Controller, r.Key, fmt.Sprintf(format, args...))) + "\n")
	}
	for _, a := range r.Result.Actions {
		verb, target, cause := a.Describe()
		line("%s %s (%s)", verb, target, cause.Reason)
	}
	for _, d := range r.News {
		line("%s %s: %s", d.Severity, d.Reason, d.Message)
	}
	if r.Err != nil && !isExpected(r.Err) {
		line("%v", r.Err)
	}
	return text.String()
}

// news returns the diagnostics that were not reported before.
func news(before, now []olmcore.Diagnostic) []olmcore.Diagnostic {
	return slices.DeleteFunc(slices.Clone(now), func(d olmcore.Diagnostic) bool {
		return slices.ContainsFunc(before, func(s olmcore.Diagnostic) bool {
			return s.Reason == d.Reason && s.Path == d.Path && s.Target.Key() == d.Target.Key()
		})
	})
}
