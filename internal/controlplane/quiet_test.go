// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
)

// quietPeriod is how long a converged cluster is watched. It is longer than the
// managers' own periods of seconds: retries, and looks after a write.
const quietPeriod = 30 * time.Second

// Once everything is converged and reported, nothing is read and nothing is written any more.
func TestAConvergedClusterCostsNoRequest(t *testing.T) {
	w := newRealWorldWith(t, controlplane.Options{NodeMonitorGrace: 10 * time.Minute})
	publish(t, map[string]int{"alpha": 1, "beta": 1})
	spaces := []string{"quiet-0", "quiet-1", "quiet-2", "quiet-3"}
	namespaces(t, w, append(spaces, "olm")...)
	w.addNode("a")
	w.start(1)
	create(t, w, catalogSource())
	for _, space := range spaces {
		create(t, w, subscribe(space, "alpha", v1alpha1.ApprovalAutomatic), subscribe(space, "beta", v1alpha1.ApprovalAutomatic), operatorGroup(space))
	}
	w.until("everything is installed", func() bool {
		for _, space := range spaces {
			for _, name := range []string{"alpha", "beta"} {
				c := get[*v1alpha1.ClusterServiceVersion](t, w, space, csvName(name, 1))
				if c == nil || c.Status.Phase != v1alpha1.CSVPhaseSucceeded || !subscriptionIs(t, w, space, name, v1alpha1.SubscriptionStateAtLatest, csvName(name, 1))() {
					return false
				}
			}
		}
		return true
	})
	w.settle()
	converged := 0
	for _, gvk := range comparedKinds {
		objects, err := w.List(t.Context(), gvk, "", nil)
		require.NoError(t, err)
		for _, o := range objects {
			if ofTheStory(o) && (strings.HasPrefix(gvk.Group, "operators.coreos.com") || o.GetLabels()[olmcore.LabelManaged] == "true") {
				converged++
			}
		}
	}
	require.NoError(t, w.nodes.Stop())

	before, err := w.plane.RequestCounts(t.Context())
	require.NoError(t, err)
	heard, sent := len(w.done()), len(requestsOf(t, w, "manager-0"))
	time.Sleep(quietPeriod) // it is the measurement
	after, err := w.plane.RequestCounts(t.Context())
	require.NoError(t, err)
	require.Empty(t, w.done()[heard:], "a converged cluster has no news")
	require.Empty(t, requestsOf(t, w, "manager-0")[sent:], "nor requests, as the audit log knows them")
	var others []string
	for _, request := range slices.SortedFunc(maps.Keys(after), func(a, b controlplane.Counted) int { return strings.Compare(a.String(), b.String()) }) {
		if n := after[request] - before[request]; n > 0 {
			others = append(others, fmt.Sprintf("%s: %.0f", request, n))
			require.NotEqual(t, "operators.coreos.com", request.Group, "%s: %.0f", request, n)
			require.False(t, request.Writes() && !ownWrites[request.Resource], "%s: %.0f", request, n)
		}
	}
	t.Logf("%d converged objects, %s: 0 reads and 0 writes of the manager; all requests that the API server counted: %v", converged, quietPeriod, others)
	require.Greater(t, converged, 50)
}

// ownWrites are what Kubernetes itself writes all the time.
var ownWrites = map[string]bool{"leases": true, "masterleases": true}

func requestsOf(t testing.TB, w *realWorld, user string) []controlplane.Request {
	requests, err := w.plane.Requests(user)
	require.NoError(t, err)
	return slices.DeleteFunc(requests, func(r controlplane.Request) bool { return r.Verb == "watch" })
}

// conflicts counts the writes of the managers that another writer was ahead of, by what they were about.
func conflicts(t testing.TB, plane *controlplane.ControlPlane) map[string]int {
	requests, err := plane.Requests("")
	require.NoError(t, err)
	counts := map[string]int{}
	for _, r := range requests {
		if r.Status.Reason == metav1.StatusReasonConflict && strings.HasPrefix(r.User.Username, "manager-") {
			counts[strings.Trim(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")]++
		}
	}
	return counts
}
