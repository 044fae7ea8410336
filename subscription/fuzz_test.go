// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"encoding/json"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// FuzzLaws draws inputs of any kind.
func FuzzLaws(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		in := drawInput(t, rapid.Bool().Draw(t, "hostile"))
		require.NoError(t, invariant.Laws(result, in))
		checkSafety(t, in)
	}))
}

// FuzzObjects decodes objects and a history from arbitrary bytes.
func FuzzObjects(f *testing.F) {
	for _, phase := range []v1alpha1.InstallPlanPhase{"", "Installing", "Complete", "Failed", "Melting"} {
		sub, err := json.Marshal(newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)))
		require.NoError(f, err)
		plan, err := json.Marshal(newPlan("p", phase, started(3), failed(9)))
		require.NoError(f, err)
		history, err := json.Marshal(known(subscription.StageInstalling))
		require.NoError(f, err)
		f.Add(sub, plan, history)
	}
	f.Fuzz(func(t *testing.T, subJSON, planJSON, historyJSON []byte) {
		sub, plan := &v1alpha1.Subscription{}, &v1alpha1.InstallPlan{}
		if json.Unmarshal(subJSON, sub) != nil || json.Unmarshal(planJSON, plan) != nil {
			return
		}
		in := inputOf(sub, plan, newCSV("etcd.v1"))
		if h := (subscription.History{}); json.Unmarshal(historyJSON, &h) == nil {
			in.Histories = map[types.UID]subscription.History{sub.UID: h}
		}
		out, err := subscription.Reconcile(in)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
			return
		}
		checkSafety(t, in)
		require.NoError(t, invariant.Separate(out.Result))
		assess(t, in)
		for _, h := range out.Histories {
			var back subscription.History
			if data, err := json.Marshal(h); err == nil { // no year beyond 9999
				require.NoError(t, json.Unmarshal(data, &back))
				require.Equal(t, h, back)
			}
		}
	})
}
