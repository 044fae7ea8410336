// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/olmcore"
)

func reconcileCleanup(in csv.Input) (cleanup.Outcome, error) {
	return cleanup.Reconcile(cleanup.Input{
		Now: in.Now, ClusterServiceVersion: in.ClusterServiceVersion, Config: in.Config.Cleanup, LastRun: in.LastRun,
		OperatorGroups: in.OperatorGroups, Neighbours: in.Neighbours, Subscriptions: in.Subscriptions,
		CustomResourceDefinitions: in.CustomResourceDefinitions, Deployments: in.Deployments, Deletion: in.Deletion,
	})
}

func reconcileGroup(in operatorgroup.Input) (olmcore.Result, error) {
	out, err := operatorgroup.Reconcile(in)
	return out.Result, err
}

func reconcileSweep(in sweep.Input) (olmcore.Result, error) {
	out, err := sweep.Reconcile(in)
	return out.Result, err
}
