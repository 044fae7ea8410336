// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// CSVSweep is the name of the controller that looks for what versions and
// OperatorGroups left behind in the whole cluster.
const CSVSweep = "csvsweep"

// csvSweeper has one key, whatever the cluster holds.
func (o *OLM) csvSweeper() fake.Controller {
	return fake.Controller{
		Name: CSVSweep, Kind: csvKind.GroupKind(), Reconcile: o.sweepCSVs,
		Keys: func(olmcore.Reader) []types.NamespacedName { return []types.NamespacedName{{Name: "cluster"}} },
	}
}

func (o *OLM) sweepCSVs(ctx context.Context, r olmcore.Reader, _ types.NamespacedName, now time.Time, _ olmcore.Outcomes) (olmcore.Result, error) {
	in, err := csv.GatherSweep(ctx, r, o.CSVConfig)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	return csv.Sweep(in)
}
