// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
)

// absences are what a registry listed, and says that it does not have. operator-registry answers so with the code that
// it has for whatever fails, and a catalog that is being replaced may answer so for a moment: what was said in one read
// alone makes that read fail. What is said in two in a row is left out.
type absences struct {
	before map[string]bool // what was said in the read before
	now    map[string]bool
}

// absent is the failure of a read because of something that the registry may not have.
type absent struct{ text string }

// Error implements error.
func (e *absent) Error() string { return e.text }

// again notes that something is said to be absent, and reports whether the read before heard the same.
func (x *absences) again(what string) bool {
	if x.now == nil {
		x.now = map[string]bool{}
	}
	x.now[what] = true
	return x.before[what]
}

// absentIn returns the registry's words when they say of one thing that it is not there, and can mean nothing else: by
// their code, or as operator-registry words it. Any other failure may pass.
func absentIn(err error, words ...string) (said string, ok bool) {
	var its *answer
	if !errors.As(err, &its) {
		return "", false
	}
	status, _ := statusOf(err)
	sure := status.Code() == codes.NotFound || status.Code() == codes.Unknown && slices.Contains(words, status.Message())
	return quoted(status.Message()), sure
}

// absentPackage is absentIn for a package. Source: operator-registry pkg/cache, packageIndex.GetPackage, and
// pkg/sqlite, SQLQuerier.GetPackage.
func absentPackage(err error, name string) (string, bool) {
	return absentIn(err, fmt.Sprintf("package %q not found", name), fmt.Sprintf("package %s not found", name))
}

// absentHead is absentIn for a bundle in a channel. Source: operator-registry pkg/cache, cache.GetBundle, and
// pkg/sqlite, SQLQuerier.GetBundle.
func absentHead(err error, pkg, channel, name string) (string, bool) {
	return absentIn(err,
		fmt.Sprintf("package %q not found", pkg), fmt.Sprintf("package %q, channel %q not found", pkg, channel),
		fmt.Sprintf("package %q, channel %q, bundle %q not found", pkg, channel, name), fmt.Sprintf("no entry found for %s %s %s", pkg, channel, name))
}
