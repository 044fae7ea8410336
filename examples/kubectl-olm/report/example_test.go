// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"fmt"

	"github.com/olmcore/olm/examples/kubectl-olm/report"
)

// What `kubectl olm why broker -o json` printed.
func ExampleReport() {
	const printed = `{
		"phase": "Installing", "reason": "ImagePullBackOff", "message": "container broker: Back-off pulling image",
		"object": {"apiVersion": "v1", "kind": "Pod", "namespace": "apps", "name": "broker-7d9c4-x2x5k"},
		"since": "2026-01-01T11:32:00Z", "advice": "Make the image available."
	}`
	var r report.Report
	if err := json.Unmarshal([]byte(printed), &r); err != nil {
		panic(err)
	}
	fmt.Println(r.Healthy(), r.Phase, r.Object.Kind, r.Object.Name, r.Since.Format("15:04"))
	// Output: false Installing Pod broker-7d9c4-x2x5k 11:32
}
