// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// TestPass runs what there is of all controllers, also after a failure, and reads the clock for each key.
func TestPass(t *testing.T) {
	c, set, _ := started(t)
	told, asked := map[string]bool{}, 0
	runners := set.Runners(c, c)
	for _, r := range runners {
		r.OnReport = func(report controller.Report) { told[report.Controller] = true }
	}
	now := func() time.Time { asked++; return c.Now() }
	runners[0].Reader = &failing{Reader: c, times: 1}
	err := controller.Pass(t.Context(), runners, now)
	require.ErrorIs(t, err, errUnread)
	require.ErrorContains(t, err, "catalog: ")
	require.Equal(t, map[string]bool{controllers.Subscription: true, controllers.Group: true}, told)
	require.Equal(t, 2, asked)

	second := &v1alpha1.CatalogSource{ObjectMeta: named("second"), Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "here:2"}}
	require.NoError(t, c.Create(second))
	for _, r := range runners {
		r.Executor = refusing{}
	}
	err = controller.Pass(t.Context(), runners, now)
	require.ErrorIs(t, err, errUnread)
	require.ErrorContains(t, err, "catalog ops/community: ")
	require.ErrorContains(t, err, "catalog ops/second: ", "the failure of one key does not stop the rest")
	for _, r := range runners {
		r.Executor = c
	}
	for range 3 {
		require.NoError(t, controller.Pass(t.Context(), runners, now))
	}
	clear(told)
	require.NoError(t, controller.Pass(t.Context(), runners, now))
	require.Empty(t, told, "nothing is left to do")
}

// refusing does nothing.
type refusing struct{}

func (refusing) Do(context.Context, olmcore.Action) error { return errUnread }

// TestASlowNamespaceHoldsUpNoOther: of a controller with several workers one may take any time.
func TestASlowNamespaceHoldsUpNoOther(t *testing.T) {
	c, _, _ := started(t)
	slow := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "slow", Name: "etcd"}, Spec: &v1alpha1.SubscriptionSpec{Package: "etcd", CatalogSource: "community", CatalogSourceNamespace: "ops"}}
	require.NoError(t, c.Create(slow, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "slow", Name: "group"}}))
	begun, end, resolved := make(chan struct{}), make(chan struct{}), false
	set := controllers.New(&controllers.Options{Resolve: func(_ context.Context, _ olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
		if request.Namespace == "slow" {
			close(begun)
			<-end
		} else {
			resolved = true
		}
		return olmcore.Resolution{Observed: request.Subscriptions}, nil
	}})
	subscriptions := controllerOf(t, set, controllers.Subscription)
	reconcile := func(namespace string) error {
		_, err := subscriptions.Reconcile(t.Context(), c, types.NamespacedName{Namespace: namespace}, noon, nil)
		return err
	}
	failed := make(chan error)
	go func() { failed <- reconcile("slow") }()
	<-begun
	err := reconcile("ops")
	_, changeErr := subscriptions.Changed(t.Context(), c, controller.Change{At: noon, New: slow})
	close(end)
	require.NoError(t, <-failed)
	require.NoError(t, err)
	require.NoError(t, changeErr)
	require.True(t, resolved)
}
