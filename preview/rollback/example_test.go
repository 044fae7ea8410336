// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview/rollback"
)

// An upgrade succeeded, and is regretted. Whoever goes the way asks again after each step.
func ExampleRun() {
	w := upgradetest.New(upgradetest.Failing{}, nil)
	w.Approve(upgradetest.Failing{})
	ctx, options, subscription, to := context.Background(), w.OLM.Options, types.NamespacedName{Namespace: "ops", Name: "vault"}, ""
	for {
		advice, err := rollback.Run(ctx, w.Cluster, subscription, to, false, w.Cluster.Now(), options)
		if err != nil || advice.Refused != "" || len(advice.Steps) == 0 {
			fmt.Println("at the end:", advice.Refused, err)
			break
		}
		to = advice.To // settled once
		if next := advice.Steps[0]; next.Action == nil {
			fmt.Println("until", next.Wait)
			w.Run(upgradetest.Failing{})
		} else {
			fmt.Println(next.Record.Verb, next.Record.Target)
			err = olmcore.Run(ctx, w.Cluster, []olmcore.Action{next.Action})
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// update Subscription ops/vault
	// delete ClusterServiceVersion ops/vault.v2.0.0
	// until ClusterServiceVersion vault.v2.0.0 is gone
	// updateStatus Subscription ops/vault
	// until the Subscription is resolved to vault.v1.0.0
	// update InstallPlan ops/install-sclq7moovc
	// until InstallPlan install-sclq7moovc is carried out
	// at the end:  <nil>
}
