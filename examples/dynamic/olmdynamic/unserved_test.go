// SPDX-License-Identifier: Apache-2.0

package olmdynamic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestAKindThatIsNotServedIsRemembered counts the requests of reads of a kind that the API server does not serve: they
// are repeated after a growing delay of at most a minute, and after a change of a CustomResourceDefinition of the
// group.
func TestAKindThatIsNotServedIsRemembered(t *testing.T) {
	var requests atomic.Int64
	server := apiserver.New(fake.NewCluster(time.Now()))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		server.ServeHTTP(w, r)
	}))
	defer front.Close()
	c, err := New(&rest.Config{Host: front.URL})
	require.NoError(t, err)
	now := time.Now()
	c.unserved.now = func() time.Time { return now }
	link := schema.GroupVersionKind{Group: "console.openshift.io", Version: "v1", Kind: "ConsoleLink"}
	asks := func() bool {
		before := requests.Load()
		_, err := c.Get(t.Context(), link, "", "x")
		require.Equal(t, olmcore.NoMatch, olmcore.Classify(err))
		_, err = c.List(t.Context(), link, "", nil)
		require.Equal(t, olmcore.NoMatch, olmcore.Classify(err))
		return requests.Load() > before
	}
	require.True(t, asks())
	require.False(t, asks())
	questions := 0
	for range 600 { // ten minutes
		now = now.Add(time.Second)
		if asks() {
			questions++
		}
	}
	require.Equal(t, 14, questions)
	definition := func(name string) olmcore.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	require.False(t, asks())
	c.Changed(definition("links.other.io"))
	require.False(t, asks())
	c.Changed(definition("consolelinks.console.openshift.io"))
	require.True(t, asks())
	require.False(t, asks())
}

// TestWhatIsNotServedIsBounded checks that names which a tenant chooses take a bounded amount of memory, and that an
// answer to a question from before a change is not remembered.
func TestWhatIsNotServedIsBounded(t *testing.T) {
	var u unserved
	noMatch := func(gvk schema.GroupVersionKind) error {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 1000 {
				gvk := schema.GroupVersionKind{Group: fmt.Sprintf("g%d-%d", i, j), Version: "v1", Kind: "K"}
				changes, _ := u.recall(gvk)
				u.learn(gvk, noMatch(gvk), changes)
			}
		})
	}
	all.Wait()
	require.Len(t, u.kinds, maxUnservedKinds)
	long := schema.GroupVersionKind{Group: strings.Repeat("g", maxUnservedName), Kind: "K"}
	u.learn(long, noMatch(long), 0)
	require.NotContains(t, u.kinds, long)

	late := schema.GroupVersionKind{Group: "late", Version: "v1", Kind: "K"}
	changes, _ := u.recall(late)
	u.forget("late")
	u.learn(late, noMatch(late), changes)
	require.NotContains(t, u.kinds, late)
}

// TestOtherAnswersDoNotHideAKind checks that a kind is read after a Get without the namespace that it needs, and after
// a write that the API server accepted.
func TestOtherAnswersDoNotHideAKind(t *testing.T) {
	server := apiserver.New(fake.NewCluster(time.Now()))
	var isAway atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An API server has no path to an object of a namespaced kind without its namespace.
		isNowhere := strings.HasPrefix(r.URL.Path, "/api/v1/configmaps/")
		if isNowhere || isAway.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") {
			http.NotFound(w, r)
			return
		}
		server.ServeHTTP(w, r)
	}))
	defer front.Close()
	c, err := New(&rest.Config{Host: front.URL})
	require.NoError(t, err)
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	list := func() error {
		_, err := c.List(t.Context(), configMap, "ns", nil)
		return err
	}

	_, err = c.Get(t.Context(), configMap, "", "x")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Equal(t, olmcore.Gone, olmcore.Classify(err))
	require.NoError(t, list())

	isAway.Store(true)
	require.Equal(t, olmcore.NoMatch, olmcore.Classify(list()))
	isAway.Store(false)
	require.Equal(t, olmcore.NoMatch, olmcore.Classify(list()), "it is remembered")
	for _, o := range []olmcore.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}},
	} {
		require.NoError(t, c.Do(t.Context(), olmcore.CreateOf(o, olmcore.Cause{Reason: "Test"})))
	}
	require.NoError(t, list())
}
