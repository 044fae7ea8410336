// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestWhatOLMRepairs holds what OLM's own tests damage: what is done about it, and
// that one Pod remains.
func TestWhatOLMRepairs(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		change func(*catalog.Input)
		want   []string
	}{
		"nothing exists": {func(in *catalog.Input) {
			in.Pods.Items, in.Services.Items, in.ServiceAccounts.Items, in.NetworkPolicies.Items = nil, nil, nil, nil
			in.CatalogSource.Status = v1alpha1.CatalogSourceStatus{}
		}, []string{"create ServiceAccount cool", "create NetworkPolicy cool-grpc-server", "create NetworkPolicy cool-unpack-bundles", "create Service cool",
			"create Pod cool-w4nrrin4qx"}},
		"the status is empty":                 {func(in *catalog.Input) { in.CatalogSource.Status = v1alpha1.CatalogSourceStatus{} }, nil},
		"the Service has another hash":        {func(in *catalog.Input) { in.Services.Items[0].Labels["olm.service-spec-hash"] = "x" }, []string{"update Service cool"}},
		"the Service has another name":        {func(in *catalog.Input) { in.Services.Items[0].Name = "other" }, []string{"create Service cool"}},
		"a policy has another label":          {func(in *catalog.Input) { in.NetworkPolicies.Items[0].Labels["olm.catalogSource"] = "x" }, []string{"update NetworkPolicy cool-grpc-server"}},
		"a policy has no label":               {func(in *catalog.Input) { in.NetworkPolicies.Items[1].Labels = nil }, []string{"update NetworkPolicy cool-unpack-bundles"}},
		"the Pod has no label":                {func(in *catalog.Input) { delete(in.Pods.Items[0].Labels, "olm.catalogSource") }, []string{"create Pod cool-2fnkoshaj3"}},
		"the registryService names no name":   {func(in *catalog.Input) { in.CatalogSource.Status.RegistryServiceStatus.ServiceName = "" }, nil},
		"the registryService names no port":   {func(in *catalog.Input) { in.CatalogSource.Status.RegistryServiceStatus.Port = "" }, nil},
		"a Pod that polls is not ready yet":   {pollAgo(time.Minute, probe(unready)), nil},
		"a Pod that polls has no status yet":  {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status = corev1.PodStatus{} })), nil},
		"an account has lost its label":       {func(in *catalog.Input) { in.ServiceAccounts.Items[0].Labels = nil }, []string{"update ServiceAccount cool"}},
		"an account of another name is there": {func(in *catalog.Input) { in.ServiceAccounts.Items[0].Name = "other" }, []string{"create ServiceAccount cool"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := reconcile(t, base, test.change)
			var got []string
			for _, a := range out.Actions {
				if verb, target, _ := a.Describe(); verb != olmcore.VerbUpdateStatus {
					got = append(got, string(verb)+" "+target.Kind+" "+target.Name)
				}
			}
			require.Equal(t, test.want, got)
			if status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions); ok && len(got) == 0 {
				service := status.Status.RegistryServiceStatus
				require.Equal(t, [4]string{"grpc", "cool", "olm", "50051"}, [4]string{service.Protocol, service.ServiceName, service.ServiceNamespace, service.Port})
			}
		})
	}
}

// TestWhereTheContentOfAPodIsTold: in the status of its only container, or in that of
// the one that copies the content; a Pod of another shape tells nothing.
func TestWhereTheContentOfAPodIsTold(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	served := base.Pods.Items[0].Status.ContainerStatuses[0].ImageID
	status := func(id string) corev1.ContainerStatus { return corev1.ContainerStatus{ImageID: id} }
	for name, test := range map[string]struct {
		inits, containers []corev1.ContainerStatus
		want              []string
	}{
		"one container with the content":       {nil, []corev1.ContainerStatus{status(served)}, []string{"delete cool-zz UpToDate"}},
		"one container with other content":     {nil, []corev1.ContainerStatus{status("x@sha256:new")}, []string{"update cool-zz CandidateReady"}},
		"copied, the same":                     {[]corev1.ContainerStatus{status("u"), status(served)}, []corev1.ContainerStatus{status("opm")}, []string{"delete cool-zz UpToDate"}},
		"copied, other content":                {[]corev1.ContainerStatus{status("u"), status("x@sha256:new")}, []corev1.ContainerStatus{status("opm")}, []string{"update cool-zz CandidateReady"}},
		"two containers tell nothing":          {nil, []corev1.ContainerStatus{status("x@sha256:new"), status("y")}, nil},
		"one container that copies, not two":   {[]corev1.ContainerStatus{status("x@sha256:new")}, []corev1.ContainerStatus{status("x@sha256:new")}, nil},
		"no status of any container":           {nil, nil, nil},
		"a container whose image is not known": {nil, []corev1.ContainerStatus{status("")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, done(reconcile(t, base, pollAgo(time.Minute, probe(func(p *corev1.Pod) {
				p.Status.InitContainerStatuses, p.Status.ContainerStatuses = test.inits, test.containers
			})))))
		})
	}
}

// TestAnAddressIsFollowed: no objects, a client of that address, and of the next one
// when it changes.
func TestAnAddressIsFollowed(t *testing.T) {
	cs := cool()
	cs.Spec = v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "one:50051"}
	w := newWorld(t, catalog.Config{}, cs)
	in := w.input(t)
	out, err := catalog.Reconcile(in)
	require.NoError(t, err)
	require.Equal(t, catalog.ConnectionRequest{Verb: catalog.ConnectionConnect, Address: "one:50051"}, out.Connection)
	require.Len(t, out.Actions, 1)
	status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Equal(t, &v1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: olmcore.Timestamp(start)}, status.Status.RegistryServiceStatus)

	in.Connection = &catalog.Connection{Address: "one:50051", State: "READY", LastConnect: start, LastTransition: start}
	out, err = catalog.Reconcile(in)
	require.NoError(t, err)
	require.Zero(t, out.Connection)
	require.NoError(t, olmcore.Run(t.Context(), w.Cluster, out.Actions))
	require.Equal(t, catalog.Notify{InvalidateSnapshot: true, ResolveNamespaces: []string{"olm"}}, out.Notify)

	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Address = "two:50051" }))
	connection := in.Connection
	in = w.input(t)
	in.Connection = connection
	out, err = catalog.Reconcile(in)
	require.NoError(t, err)
	require.Equal(t, catalog.ConnectionRequest{Verb: catalog.ConnectionConnect, Address: "two:50051"}, out.Connection)
	status, _ = olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Equal(t, "two:50051", status.Status.GRPCConnectionState.Address)
	require.Equal(t, metav1.ConditionUnknown, meta.FindStatusCondition(status.Status.Conditions, "Available").Status)
}
