// SPDX-License-Identifier: Apache-2.0

// Package config renders the manifests of the manager: what kubectl apply -k takes of its folders.
package config

import (
	"embed"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

//go:embed configfile crds default manager operands rbac servicemonitor
var folders embed.FS

// Render returns the objects of one of the folders, such as default, in the order in which they are to be applied. The
// error is of a folder that is not there, or of what is in it.
func Render(folder string) ([]*unstructured.Unstructured, error) {
	memory := filesys.MakeFsInMemory()
	if err := fs.WalkDir(folders, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := folders.ReadFile(path)
		if err != nil {
			return err
		}
		return memory.WriteFile(path, data)
	}); err != nil {
		return nil, err
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, folder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, r := range rendered.Resources() {
		data, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", folder, r.CurId(), err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", folder, r.CurId(), err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}
