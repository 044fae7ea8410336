// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore/controller"
)

// kubernetesVersion is that of the control plane, for both worlds.
const kubernetesVersion = "v1.36.3"

// realWorld is a real control plane with managers of examples/controllerruntime.
type realWorld struct {
	*olmdynamic.Cluster
	reports
	t        testing.TB
	plane    *controlplane.ControlPlane
	nodes    *controlplane.Nodes
	managers []func() error // each ends one
	begun    time.Time
	issuer   controllers.Issuer    // nil: the default
	roles    []*rbacv1.ClusterRole // of the managers: those of the manifests
}

func init() { log.SetLogger(logr.Discard()) }

func newRealWorld(t testing.TB) *realWorld { return newRealWorldWith(t, controlplane.Options{}) }

func newRealWorldWith(t testing.TB, o controlplane.Options) *realWorld {
	begun := time.Now()
	plane, err := controlplane.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { rightsUsed.add(t, plane); require.NoError(t, plane.Stop()) })
	t.Logf("the control plane is ready after %s", time.Since(begun).Round(time.Millisecond))
	config, err := plane.As("user")
	require.NoError(t, err)
	user, err := olmdynamic.New(config)
	require.NoError(t, err)
	user.FieldValidation = "Strict"
	w := &realWorld{Cluster: user, t: t, plane: plane, begun: time.Now()}
	w.roles, err = controlplane.ManagerRoles()
	require.NoError(t, err)
	// The fake cluster computes the imageID of an image.
	images := fake.NewCluster(time.Now())
	w.nodes, err = plane.PlayNodes(func(name string) string { return images.Image(name).ID() })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.nodes.Stop()) })
	t.Cleanup(func() { t.Logf("conflicts of the managers: %v", conflicts(t, plane)) })
	t.Cleanup(w.stop)
	return w
}

func (w *realWorld) addNode(name string)  { require.NoError(w.t, w.nodes.Add(w.t.Context(), name)) }
func (w *realWorld) failNode(name string) { w.nodes.Fail(name) }

func (w *realWorld) start(managers int) {
	for range managers {
		name := fmt.Sprintf("manager-%d", len(w.managers))
		config, err := w.plane.AsBoundTo(w.t.Context(), name, w.roles...)
		require.NoError(w.t, err)
		o := options(w.connection)
		o.Issuer = w.issuer
		mgr, err := olmruntime.New(config, ctrl.Options{
			Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(20 * time.Second),
		}, olmruntime.Options{Options: o, FieldValidation: "Strict", OnReport: func(r controller.Report) {
			w.add(report{manager: name, controller: r.Controller, key: r.Key, result: r.Result, err: r.Err})
		}})
		require.NoError(w.t, err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		w.managers = append(w.managers, func() error { cancel(); return <-ended })
	}
}

func (w *realWorld) stop() {
	var failed []error
	for _, end := range w.managers {
		failed = append(failed, end())
	}
	w.managers = nil
	require.NoError(w.t, errors.Join(failed...))
}

// settleTime is for a busy machine; nothing waits for it to pass.
const settleTime = 3 * time.Minute

func (w *realWorld) until(what string, condition func() bool) {
	for deadline := time.Now().Add(settleTime); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if condition() {
			w.t.Logf("%7.1fs  %s", time.Since(w.begun).Seconds(), what)
			return
		}
	}
	require.FailNow(w.t, settleTime.String()+" are over", "not yet: %s\n%s", what, state(w.t, w))
}

func (w *realWorld) published() { republish(w.t, w) }

// connection plays a gRPC client: it is connected while a Pod is ready.
func (w *realWorld) connection(in catalog.Input, address string) *catalog.Connection {
	if address == "" {
		return nil
	}
	c := &catalog.Connection{Address: address, State: "TRANSIENT_FAILURE", LastTransition: w.begun}
	for _, pod := range in.Pods.Items {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		if i < 0 || pod.Labels["olm.catalogSource"] != in.CatalogSource.Name {
			continue
		}
		switch at := pod.Status.Conditions[i].LastTransitionTime.Time; {
		case pod.Status.Conditions[i].Status != corev1.ConditionTrue:
			if at.After(c.LastTransition) {
				c.LastTransition = at
			}
		case c.LastConnect.IsZero() || at.Before(c.LastConnect):
			c.State, c.LastConnect = "READY", at
		}
	}
	return c
}

// requireNoOwnerLost looks at each version of each plan that a manager wrote:
// no owner that it ever had is missing later on.
func (w *realWorld) requireNoOwnerLost() {
	requests, err := w.plane.Requests("")
	require.NoError(w.t, err)
	owners := map[types.UID][]string{}
	for _, r := range requests {
		if !r.Writes() || r.Object.Resource != "installplans" || r.Status.Code >= 300 || r.Verb == "delete" {
			continue
		}
		var plan metav1.PartialObjectMetadata
		require.NoError(w.t, json.Unmarshal(r.Answered, &plan))
		var now []string
		for _, ref := range plan.OwnerReferences {
			now = append(now, ref.Name)
		}
		for _, before := range owners[plan.UID] {
			require.Contains(w.t, now, before, "%s by %s", r.URI, r.User.Username)
		}
		owners[plan.UID] = now
	}
	require.NotEmpty(w.t, owners)
}

// quietTime is how long there may be no write until the world counts as settled. The managers' own retries come sooner.
const quietTime = 8 * time.Second

func (w *realWorld) settle() {
	last, since := -1, time.Now()
	w.until("everything is settled", func() bool {
		writes := 0
		requests, err := w.plane.Requests("")
		require.NoError(w.t, err)
		for _, r := range requests {
			if r.Writes() && strings.HasPrefix(r.User.Username, "manager-") {
				writes++
			}
		}
		if writes != last {
			last, since = writes, time.Now()
		}
		time.Sleep(500 * time.Millisecond) // to read the whole log is work
		return time.Since(since) > quietTime
	})
}

// check fails the test when a manager did what it has no right to, wrote without strict validation, or the API server
// refused what was in a write.
func (w *realWorld) check() {
	refused, err := w.plane.Refused("manager-")
	require.NoError(w.t, err)
	for _, r := range refused {
		w.t.Errorf("%s %s by %s: %s", r.Verb, r.URI, r.User.Username, r.Status.Message)
	}
	requests, err := w.plane.Requests("")
	require.NoError(w.t, err)
	for _, r := range requests {
		if !r.Writes() || !strings.HasPrefix(r.User.Username, "manager-") || r.Object.APIGroup == "authorization.k8s.io" {
			continue
		}
		if r.Status.Code == 400 || r.Status.Code == 422 || r.Verb != "delete" && !strings.Contains(r.URI, "fieldValidation=Strict") {
			w.t.Errorf("%s %s by %s: %d %s\n%s", r.Verb, r.URI, r.User.Username, r.Status.Code, r.Status.Message, r.Sent)
		}
	}
	replay(w.t, requests)
}
