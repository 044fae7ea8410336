// SPDX-License-Identifier: Apache-2.0

package packageserver

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/olmcore/olm/subscription/resolution/packages"
)

// storage is the resource packagemanifests. It can be got and listed; that it is none of the interfaces for more makes
// the API server refuse the rest, a watch too, with MethodNotAllowed.
type storage struct{ content *Content }

var (
	_ rest.Lister               = storage{}
	_ rest.Getter               = storage{}
	_ rest.Scoper               = storage{}
	_ rest.SingularNameProvider = storage{}
)

// New implements rest.Storage.
func (storage) New() runtime.Object { return &packages.PackageManifest{} }

// Destroy implements rest.Storage.
func (storage) Destroy() {}

// NewList implements rest.Lister.
func (storage) NewList() runtime.Object { return &packages.PackageManifestList{} }

// NamespaceScoped implements rest.Scoper.
func (storage) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (storage) GetSingularName() string { return "packagemanifest" }

// Get implements rest.Getter. Of several packages of one name it returns the one that a Subscription would get.
func (s storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	m := s.content.find(genericapirequest.NamespaceValue(ctx), name)
	if m == nil {
		return nil, apierrors.NewNotFound(resource, name)
	}
	return m, nil
}

// List implements rest.Lister. limit is not applied, as an API server may: the list is in memory as a whole.
func (s storage) List(ctx context.Context, o *metainternalversion.ListOptions) (runtime.Object, error) {
	byLabel, byField := labels.Everything(), fields.Everything()
	if o != nil && o.LabelSelector != nil {
		byLabel = o.LabelSelector
	}
	if o != nil && o.FieldSelector != nil {
		byField = o.FieldSelector
	}
	list := &packages.PackageManifestList{Items: []packages.PackageManifest{}}
	for _, m := range s.content.Packages(genericapirequest.NamespaceValue(ctx)) {
		if byLabel.Matches(labels.Set(m.Labels)) && byField.Matches(fields.Set{"metadata.name": m.Name, "metadata.namespace": m.Namespace}) {
			list.Items = append(list.Items, m)
		}
	}
	return list, nil
}

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The package"},
	{Name: "Catalog", Type: "string", Description: "The display name of the CatalogSource that has it"},
	{Name: "Age", Type: "string", Description: "The time since the CatalogSource was made"},
}

// ConvertToTable implements rest.TableConvertor.
func (s storage) ConvertToTable(_ context.Context, o, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if t, ok := options.(*metav1.TableOptions); !ok || !t.NoHeaders {
		table.ColumnDefinitions = columns
	}
	row := func(m *packages.PackageManifest) {
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  []any{m.Name, m.Status.CatalogSourceDisplayName, metatable.ConvertToHumanReadableDateType(m.CreationTimestamp)},
			Object: runtime.RawExtension{Object: m},
		})
	}
	switch o := o.(type) {
	case *packages.PackageManifest:
		row(o)
	case *packages.PackageManifestList:
		for i := range o.Items {
			row(&o.Items[i])
		}
	default:
		return nil, apierrors.NewInternalError(errNoManifest)
	}
	return table, nil
}
