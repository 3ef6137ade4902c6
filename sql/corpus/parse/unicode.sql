SELECT 'é☃😀'　FROM "テーブル" -- x
;;SELECT U&'\00e9' UESCAPE '!'