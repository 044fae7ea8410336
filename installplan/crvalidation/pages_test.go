// SPDX-License-Identifier: Apache-2.0

package crvalidation_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/crvalidation"
)

// pager serves Crons in pages.
type pager struct {
	items []unstructured.Unstructured
	// uncounted: it does not say how many are left. fails is the page that cannot be read, from 1.
	uncounted bool
	fails     int
	err       error

	pages int
}

func (p *pager) ListPage(_ context.Context, gvk schema.GroupVersionKind, limit int, after string) ([]byte, error) {
	if gvk != (schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cron"}) || limit != 20 {
		return nil, fmt.Errorf("unexpected list of %d %s", limit, gvk)
	}
	if p.pages++; p.pages == p.fails {
		return nil, p.err
	}
	from := 0
	if after != "" {
		from, _ = strconv.Atoi(after)
	}
	to := min(from+limit, len(p.items))
	list := &unstructured.UnstructuredList{Items: p.items[from:to]}
	if left := int64(len(p.items) - to); left > 0 {
		list.SetContinue(strconv.Itoa(to))
		if !p.uncounted {
			list.SetRemainingItemCount(&left)
		}
	}
	list.SetAPIVersion("example.com/v1")
	list.SetKind("CronList")
	return list.MarshalJSON()
}

// garbage is a Reader whose answers are not those of an API server.
type garbage string

func (g garbage) ListPage(context.Context, schema.GroupVersionKind, int, string) ([]byte, error) {
	return []byte(g), nil
}

// someCrons returns custom resources. The last one has 10 replicas, and the others have 1.
func someCrons(t testing.TB, n int) (items []unstructured.Unstructured) {
	for i := range n {
		replicas := 1
		if i == n-1 {
			replicas = 10
		}
		items = append(items, *cron(t, fmt.Sprintf("c%05d", i), fmt.Sprintf("{replicas: %d}", replicas)))
	}
	return items
}

func atMost9(t testing.TB) []installplan.SchemaChange {
	return []installplan.SchemaChange{{Before: definition(t, true, spec("replicas: {type: integer}")),
		After: definition(t, true, spec("replicas: {type: integer, maximum: 9}")), Versions: []string{"v1"}}}
}

// TestCustomResourcesAreReadInPages checks that no more custom resources are read than are validated, and that the
// others are counted if the API server returns their number.
func TestCustomResourcesAreReadInPages(t *testing.T) {
	for name, c := range map[string]struct {
		items, resources int
		uncounted        bool
		pages, unread    int
		invalid          bool
	}{
		"none":                       {items: 0, resources: 1000, pages: 1},
		"one page":                   {items: 20, resources: 1000, pages: 1, invalid: true},
		"several pages":              {items: 50, resources: 1000, pages: 3, invalid: true},
		"as many as are validated":   {items: 40, resources: 40, pages: 2, invalid: true},
		"more, at the end of a page": {items: 50, resources: 40, pages: 2, unread: 10},
		"more, within a page":        {items: 50, resources: 30, pages: 2, unread: 20},
		"more, without a count":      {items: 70, resources: 30, uncounted: true, pages: 2, unread: 11},
		"more, at the end of a page, without a count": {items: 70, resources: 40, uncounted: true, pages: 2, unread: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pager{items: someCrons(t, c.items), uncounted: c.uncounted}
			verdicts, err := crvalidation.LiveWithin(t.Context(), p, atMost9(t), c.resources)
			require.NoError(t, err)
			require.Equal(t, c.pages, p.pages)
			unread := 0
			for _, v := range verdicts {
				unread += v.Unread
			}
			require.Equal(t, c.unread, unread)
			if !c.invalid {
				require.LessOrEqual(t, len(verdicts), 1)
				return
			}
			require.Len(t, verdicts, 1)
			require.Equal(t, fmt.Sprintf("c%05d", c.items-1), verdicts[0].Name)
			require.Len(t, verdicts[0].New, 1)
		})
	}
}

// TestUnreadablePageRefusesTheChange checks that the change is refused if a page cannot be read, and that invalid
// custom resources of earlier pages are named.
func TestUnreadablePageRefusesTheChange(t *testing.T) {
	p := &pager{items: someCrons(t, 200), fails: 2, err: errors.New("etcd is gone")}
	p.items[0] = *cron(t, "c", "{replicas: 11}")
	verdicts, err := crvalidation.Live(p)(t.Context(), nil, atMost9(t))
	require.NoError(t, err)
	require.Len(t, verdicts, 2)
	require.Equal(t, "error listing crons.example.com of version v1: etcd is gone", verdicts[0].ReadError)
	require.Equal(t, "c", verdicts[1].Name)

	for _, text := range []garbage{"[]", `{"items": [[]]}`, `{"items": [{}, 1]}`, "x"} {
		verdicts, err = crvalidation.Live(text)(t.Context(), nil, atMost9(t))
		require.NoError(t, err)
		require.Len(t, verdicts, 1, text)
		require.Contains(t, verdicts[0].ReadError, "error listing crons.example.com of version v1: ", text)
	}
	verdicts, err = crvalidation.Live(garbage(`{"items": [null, {}]}`))(t.Context(), nil, atMost9(t))
	require.NoError(t, err)
	require.Empty(t, verdicts, "nothing is wrong with nothing")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = crvalidation.Live(&pager{})(ctx, nil, atMost9(t))
	require.ErrorIs(t, err, context.Canceled)
}

// TestMissingPermissionIsNamed checks that the message names the missing permission and how to grant it.
func TestMissingPermissionIsNamed(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "crons"}, "",
		errors.New(`User "system:serviceaccount:olm:olm" cannot list resource "crons" in API group "example.com" at the cluster scope`))
	verdicts, err := crvalidation.Live(&pager{fails: 1, err: forbidden})(t.Context(), nil, atMost9(t))
	require.NoError(t, err)
	require.Equal(t, []installplan.ResourceVerdict{{CustomResourceDefinition: "crons.example.com", Version: "v1",
		ReadError: `error listing crons.example.com of version v1: crons.example.com is forbidden: User "system:serviceaccount:olm:olm" cannot list resource "crons" ` +
			`in API group "example.com" at the cluster scope; bind the account that judges to a ClusterRole with the rule ` +
			`{apiGroups: [example.com], resources: [crons], verbs: [list]}, or judge no custom resources (--judge=false)`}}, verdicts)
}

// TestLongFindingsAreCut checks a finding that quotes a large value.
func TestLongFindingsAreCut(t *testing.T) {
	before, after := definition(t, true, spec("a: {type: string}")), definition(t, true, spec("a: {type: string, pattern: b}"))
	verdicts := judge(t, before, after, cron(t, "x", "{a: "+strings.Repeat("ä", 10_000)+"}"))
	require.Len(t, verdicts, 1)
	require.Less(t, len(verdicts[0].New[0]), 1100)
	require.True(t, strings.HasSuffix(verdicts[0].New[0], "ä ..."), verdicts[0].New[0])
}

// BenchmarkLive validates the maximum number of custom resources, which are read in pages.
func BenchmarkLive(b *testing.B) {
	p, changes := &pager{items: someCrons(b, 10_000)}, atMost9(b)
	b.ReportAllocs()
	for b.Loop() {
		if verdicts, err := crvalidation.Live(p)(b.Context(), nil, changes); err != nil || len(verdicts) != 1 {
			b.Fatal(verdicts, err)
		}
	}
}
