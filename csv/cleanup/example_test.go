// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"encoding/json"
	"fmt"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
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

func printRecords(res olmcore.Result) {
	for _, a := range res.Actions {
		record, err := olmcore.RecordOf(a)
		if err != nil {
			panic(err)
		}
		record.Target.UID, record.Target.ResourceVersion = "", ""
		text, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}
