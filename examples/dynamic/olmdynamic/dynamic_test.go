// SPDX-License-Identifier: Apache-2.0

package olmdynamic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

func connect(t *testing.T, c *fake.Cluster) (*apiserver.Server, *olmdynamic.Cluster) {
	c.AutoCreateNamespaces = true
	s := apiserver.New(c)
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	connected, err := olmdynamic.New(&rest.Config{Host: front.URL, QPS: -1})
	require.NoError(t, err)
	return s, connected
}

func TestTheContracts(t *testing.T) {
	c := fake.NewCluster(time.Now())
	require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	s, connected := connect(t, c)
	require.NoError(t, invariant.CheckExecutor(t.Context(), connected, connected, "ns"))
	require.NoError(t, invariant.CheckReader(t.Context(), func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
		return connected, s.With(func(c *fake.Cluster) error { return c.Create(objects...) })
	}))
	s.Break(true)
	require.NoError(t, invariant.CheckBrokenReader(t.Context(), connected))
}

func TestARecordFromAFileRunsAsItsServiceAccount(t *testing.T) {
	c := fake.NewCluster(time.Now())
	c.Authorize = func(as *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if as != nil && as.Namespace == "ns" && as.Name == "installer" {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, target.Name, nil)
	}
	_, connected := connect(t, c)
	create := olmcore.CreateOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}, olmcore.Cause{Reason: "Test"})
	require.True(t, apierrors.IsForbidden(connected.Do(t.Context(), create)))
	create.As = &corev1.ObjectReference{Namespace: "ns", Name: "installer"}
	record, err := olmcore.RecordOf(create)
	require.NoError(t, err)
	data, err := json.Marshal(record)
	require.NoError(t, err)
	var read olmcore.Record
	require.NoError(t, json.Unmarshal(data, &read))
	require.NoError(t, connected.Run(t.Context(), read))
}

// TestAKindMayBeNew: one that was not there when the program began is found.
func TestAKindMayBeNew(t *testing.T) {
	c := fake.NewCluster(time.Now())
	s, connected := connect(t, c)
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	_, err := connected.List(t.Context(), widget, "", nil)
	require.Equal(t, olmcore.NoMatch, olmcore.Classify(err))
	require.NoError(t, s.With(func(c *fake.Cluster) error {
		return c.Create(&apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: widget.Group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: widget.Kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: widget.Version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
			},
		})
	}))
	require.NoError(t, s.With(func(c *fake.Cluster) error { return c.Settle() }))
	require.Eventually(t, func() bool {
		objects, err := connected.List(t.Context(), widget, "", nil)
		return err == nil && len(objects) == 0
	}, 10*time.Second, 50*time.Millisecond)
}

// TestAPageIsTheTextOfAList, of any group, and an error what the API server says.
func TestAPageIsTheTextOfAList(t *testing.T) {
	objects, err := apiserver.StricterSchema(map[string]int{"a": 1, "b": 2, "c": 3})
	require.NoError(t, err)
	cluster := fake.NewCluster(time.Now())
	require.NoError(t, cluster.Load(objects...))
	s, connected := connect(t, cluster)
	var forbidden atomic.Bool
	s.Authorize = func(authorizationv1.ResourceAttributes) bool { return !forbidden.Load() }
	page := func(kind schema.GroupVersionKind, limit int, from string) (names []string, next string, err error) {
		text, err := connected.ListPage(t.Context(), kind, limit, from)
		if err != nil {
			return nil, "", err
		}
		var list metav1.PartialObjectMetadataList
		require.NoError(t, json.Unmarshal(text, &list))
		for _, o := range list.Items {
			names = append(names, o.Name)
		}
		return names, list.Continue, nil
	}
	cron := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cron"}
	names, next, err := page(cron, 2, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	names, next, err = page(cron, 2, next)
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, names)
	require.Empty(t, next)
	names, _, err = page(corev1.SchemeGroupVersion.WithKind("Namespace"), 5, "")
	require.NoError(t, err)
	require.Contains(t, names, "ops")
	_, _, err = page(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, 5, "")
	require.Equal(t, olmcore.NoMatch, olmcore.Classify(err))
	forbidden.Store(true)
	_, _, err = page(cron, 2, "")
	require.Equal(t, olmcore.Forbidden, olmcore.Classify(err))
	require.EqualError(t, err, "crons.example.com is forbidden: no rule allows it")
	s.Break(true)
	_, _, err = page(cron, 2, "")
	require.Equal(t, olmcore.Transient, olmcore.Classify(err))
}

// TestWritesSayWhoseTheyAre, and how strictly they shall be validated.
func TestWritesSayWhoseTheyAre(t *testing.T) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	s := apiserver.New(c)
	var asked []url.Values
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost || r.Method == http.MethodPatch {
			asked = append(asked, r.URL.Query())
		}
		s.ServeHTTP(w, r)
	}))
	defer front.Close()
	connected, err := olmdynamic.New(&rest.Config{Host: front.URL, QPS: -1})
	require.NoError(t, err)
	require.Equal(t, apiserver.Version, connected.Version)
	connected.FieldManager, connected.FieldValidation = "olm", "Strict"
	require.NoError(t, invariant.CheckExecutor(t.Context(), connected, connected, "ns"))
	for _, query := range asked {
		require.Equal(t, url.Values{"fieldManager": {"olm"}, "fieldValidation": {"Strict"}}, query)
	}
	require.NotEmpty(t, asked)
}

// TestPassesLeadToRest brings a catalog up by passes, until one asks for nothing.
func TestPassesLeadToRest(t *testing.T) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Node("a").Create(nil))
	require.NoError(t, c.Create(
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:latest",
				GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}, UpdateStrategy: &v1alpha1.UpdateStrategy{}},
		},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}},
	))
	s, connected := connect(t, c)
	var out bytes.Buffer
	runners := controllers.New(&controllers.Options{KubernetesVersion: connected.Version}).Runners(connected, connected)
	runners = slices.DeleteFunc(
		runners,
		func(r *controller.Runner) bool { return r.Name != controllers.Catalog && r.Name != controllers.Group },
	)
	for _, r := range runners {
		r.OnReport = func(report controller.Report) { fmt.Fprint(&out, report) }
	}
	pass := func() string {
		out.Reset()
		require.NoError(t, controller.Pass(t.Context(), runners, time.Now))
		require.NoError(t, s.With(func(c *fake.Cluster) error { return c.Settle() }))
		return out.String()
	}
	require.Contains(t, pass(), "catalog olm/community: create Pod olm/community-")
	for range 10 {
		if pass() == "" {
			break
		}
	}
	require.Empty(t, out.String())
	s.Requests()
	require.Empty(t, pass())
	asked := s.Requests()
	require.Zero(t, asked["create"]+asked["patch"]+asked["delete"])
	require.NoError(t, s.With(func(c *fake.Cluster) error {
		require.NotEmpty(t, fake.Find[*v1alpha1.CatalogSource](c, "olm", "community").Status.Conditions)
		return nil
	}))
	s.Break(true)
	require.Error(t, controller.Pass(t.Context(), runners, time.Now))
}

func TestTheServerSaysWhatIsAllowed(t *testing.T) {
	s, connected := connect(t, fake.NewCluster(time.Now()))
	var asked authorizationv1.ResourceAttributes
	s.Allowed = func(what authorizationv1.ResourceAttributes) bool {
		asked = what
		return what.Verb == "list"
	}
	what := authorizationv1.ResourceAttributes{Namespace: "a", Verb: "list", Group: "apps", Resource: "deployments", Subresource: "status"}
	allowed, err := connected.Allowed(t.Context(), what)
	require.NoError(t, err)
	require.True(t, allowed)
	require.Equal(t, what, asked)
	what.Verb = "delete"
	allowed, err = connected.Allowed(t.Context(), what)
	require.NoError(t, err)
	require.False(t, allowed)
	s.Break(true)
	_, err = connected.Allowed(t.Context(), what)
	require.Error(t, err)
}
