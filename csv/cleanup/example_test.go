// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"github.com/olmcore/olm/csv/cleanup"
)

// Reconcile goes through the stages: here nothing is outside the namespace, so the ClusterServiceVersion is released at
// once.
func ExampleReconcile() {
	in := leaving()
	out, err := cleanup.Reconcile(in)
	if err != nil {
		panic(err)
	}
	printRecords(out.Result)
	// Output:
	// {"verb":"update","target":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","namespace":"ns","name":"cool.v1"},"cause":{"reason":"CleanupComplete","message":"nothing is left to clean up"},"patch":{"metadata":{"finalizers":null}}}
}
